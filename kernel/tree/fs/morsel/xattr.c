// SPDX-License-Identifier: GPL-2.0-only
/* Extended attributes and access control lists of inodes of morselfs, as on tmpfs. */

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/posix_acl.h>
#include <linux/security.h>
#include <linux/slab.h>
#include <linux/xattr.h>

#include "internal.h"
#include "pmem.h"

/* Most bytes of names and values of an inode: they are memory of the kernel. */
#define MOST_BYTES	SZ_64K

static size_t morsel_xattr_bytes(const struct simple_xattr *xattr)
{
	return xattr ? simple_xattr_space(xattr->name, xattr->size) : 0;
}

static int morsel_get_xattr(const struct xattr_handler *handler, struct dentry *dentry,
			    struct inode *inode, const char *name, void *value,
			    size_t size)
{
	return simple_xattr_get(&morsel_of(inode)->xattrs,
				xattr_full_name(handler, name), value, size);
}

static int morsel_set_xattr(const struct xattr_handler *handler, struct mnt_idmap *idmap,
			    struct dentry *dentry, struct inode *inode, const char *name,
			    const void *value, size_t size, int flags)
{
	struct morsel *morsel = morsel_of(inode);
	struct simple_xattr *old;
	size_t added = 0;
	u64 page;
	int err;

	name = xattr_full_name(handler, name);
	if (value)
		added = simple_xattr_space(name, size);
	if (morsel->xattr_bytes + added > MOST_BYTES)
		return -ENOSPC;
	err = morsel_pmem_new_xattrs(inode, name, value, size, &page);
	if (err)
		return err;
	old = simple_xattr_set(&morsel->xattrs, name, value, size, flags);
	if (IS_ERR(old)) {
		morsel_pmem_drop_xattrs(inode, page);
		return PTR_ERR(old);
	}
	morsel->xattr_bytes += added - morsel_xattr_bytes(old);
	simple_xattr_free(old);
	inode_set_ctime_current(inode);
	return morsel_pmem_set_xattrs(inode, page);
}

static const struct xattr_handler morsel_security_handler = {
	.prefix = XATTR_SECURITY_PREFIX,
	.get = morsel_get_xattr,
	.set = morsel_set_xattr,
};

static const struct xattr_handler morsel_trusted_handler = {
	.prefix = XATTR_TRUSTED_PREFIX,
	.get = morsel_get_xattr,
	.set = morsel_set_xattr,
};

static const struct xattr_handler morsel_user_handler = {
	.prefix = XATTR_USER_PREFIX,
	.get = morsel_get_xattr,
	.set = morsel_set_xattr,
};

const struct xattr_handler *const morsel_xattr_handlers[] = {
	&morsel_security_handler,
	&morsel_trusted_handler,
	&morsel_user_handler,
	NULL
};

/**
 * morsel_list_xattrs - list the names of extended attributes
 * @dentry: name of the inode
 * @list: buffer, or NULL
 * @size: its size
 *
 * Context: may sleep.
 * Return: number of bytes, or an error.
 */
ssize_t morsel_list_xattrs(struct dentry *dentry, char *list, size_t size)
{
	struct inode *inode = d_inode(dentry);

	return simple_xattr_list(inode, &morsel_of(inode)->xattrs, list, size);
}

/**
 * morsel_set_acl - set an access control list
 * @idmap: mapping of ids of the mount
 * @dentry: name of the inode
 * @acl: the list
 * @type: ACL_TYPE_*
 *
 * Context: may sleep; the lock of the inode is held.
 * Return: 0, -EOPNOTSUPP in persistent memory, -EPERM if a seal keeps the permissions to
 * execute, or another error.
 */
int morsel_set_acl(struct mnt_idmap *idmap, struct dentry *dentry, struct posix_acl *acl,
		   int type)
{
	/* They would not survive the mount. */
	if (morsel_sb_of(d_inode(dentry)->i_sb)->pmem)
		return -EOPNOTSUPP;
	/* An entry of the list is a permission, too. */
	if (morsel_of(d_inode(dentry))->seals & F_SEAL_EXEC)
		return -EPERM;
	return simple_set_acl(idmap, dentry, acl, type);
}

/**
 * morsel_add_xattr - give a new inode an extended attribute
 * @inode: the inode
 * @prefix: begin of the name
 * @name: the rest of it
 * @value: the value
 * @size: its size
 *
 * Context: may sleep; nothing else uses @inode yet.
 * Return: 0 or -ENOMEM.
 */
int morsel_add_xattr(struct inode *inode, const char *prefix, const char *name,
		     const void *value, size_t size)
{
	struct morsel *morsel = morsel_of(inode);
	struct simple_xattr *xattr = simple_xattr_alloc(value, size);

	if (!xattr)
		return -ENOMEM;
	xattr->name = kasprintf(GFP_KERNEL_ACCOUNT, "%s%s", prefix, name);
	if (!xattr->name) {
		kvfree(xattr);
		return -ENOMEM;
	}
	simple_xattr_add(&morsel->xattrs, xattr);
	morsel->xattr_bytes += morsel_xattr_bytes(xattr);
	return 0;
}

/* Take the attributes that a security module gives to a new inode. */
static int morsel_take_xattrs(struct inode *inode, const struct xattr *given, void *unused)
{
	int err = 0;

	for (; !err && given->name; given++)
		err = morsel_add_xattr(inode, XATTR_SECURITY_PREFIX, given->name, given->value,
				       given->value_len);
	return err;
}

/**
 * morsel_init_security - give a new inode its security attributes and access control list
 * @inode: the inode
 * @dir: directory that it is made in
 * @name: its name, NULL if it has none
 *
 * Context: may sleep.
 * Return: 0 or an error.
 */
int morsel_init_security(struct inode *inode, struct inode *dir, const struct qstr *name)
{
	int err = simple_acl_create(dir, inode);

	if (err)
		return err;
	err = security_inode_init_security(inode, dir, name, morsel_take_xattrs, NULL);
	return err == -EOPNOTSUPP ? 0 : err;
}

/**
 * morsel_free_xattrs - free the extended attributes of an inode
 * @inode: the inode, which is not in use any more
 *
 * Context: may sleep.
 */
void morsel_free_xattrs(struct inode *inode)
{
	simple_xattrs_free(&morsel_of(inode)->xattrs, NULL);
}
