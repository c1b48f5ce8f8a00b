// SPDX-License-Identifier: GPL-2.0-only
/* Mounts of morselfs, and the memory of its inodes. */

#include <linux/fs.h>
#include <linux/fs_context.h>
#include <linux/fs_parser.h>
#include <linux/magic.h>
#include <linux/module.h>
#include <linux/pagemap.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/statfs.h>
#include <asm/cpufeature.h>
#include <uapi/linux/morsel.h>

#include "internal.h"
#include "pmem.h"

#define CREATE_TRACE_POINTS
#include <trace/events/morsel.h>

static struct kmem_cache *morsel_cache;

/* Inodes */

static struct inode *morsel_alloc_inode(struct super_block *super)
{
	struct morsel *morsel = alloc_inode_sb(super, morsel_cache, GFP_KERNEL);

	if (!morsel)
		return NULL;
	if (percpu_counter_init(&morsel->pages, 0, GFP_KERNEL_ACCOUNT)) {
		kmem_cache_free(morsel_cache, morsel);
		return NULL;
	}
	xa_init(&morsel->regions);
	morsel->closed = false;
	atomic_set(&morsel->taking, 0);
	morsel->seals = 0;
	morsel->whole = 0;
	simple_xattrs_init(&morsel->xattrs);
	morsel->xattr_bytes = 0;
	morsel->at = 0;
	morsel->root = 0;
	morsel->xattr_page = 0;
	mutex_init(&morsel->adding);
	atomic_set(&morsel->writers, 0);
	xa_init(&morsel->written);
	morsel->holds = 0;
	return &morsel->inode;
}

static void morsel_free_inode(struct inode *inode)
{
	if (S_ISLNK(inode->i_mode))
		kfree(inode->i_link);
	percpu_counter_destroy(&morsel_of(inode)->pages);
	kmem_cache_free(morsel_cache, morsel_of(inode));
}

static void morsel_evict_inode(struct inode *inode)
{
	truncate_inode_pages_final(&inode->i_data);
	morsel_pmem_evict(inode);
	clear_inode(inode);
	morsel_destroy(morsel_of(inode));
	morsel_free_xattrs(inode);
	percpu_counter_dec(&morsel_sb_of(inode->i_sb)->inodes);
}

/* Mounts */

static int morsel_statfs(struct dentry *dentry, struct kstatfs *stat)
{
	struct morsel_sb *sb = morsel_sb_of(dentry->d_sb);

	stat->f_type = MORSELFS_MAGIC;
	stat->f_bsize = PAGE_SIZE;
	stat->f_namelen = NAME_MAX;
	if (sb->limit) {
		stat->f_blocks = sb->limit;
		stat->f_bfree = sb->limit - (sb->pmem ? morsel_pmem_used(sb->pmem) :
					     percpu_counter_sum_positive(&sb->used));
		stat->f_bavail = stat->f_bfree;
	}
	if (sb->inode_limit) {
		stat->f_files = sb->inode_limit;
		stat->f_ffree = sb->inode_limit -
				percpu_counter_sum_positive(&sb->inodes);
	}
	return 0;
}

static int morsel_show_options(struct seq_file *m, struct dentry *root)
{
	struct morsel_sb *sb = morsel_sb_of(root->d_sb);

	if (sb->device) {
		seq_show_option(m, "pmem", sb->device);
		return 0;
	}
	if (sb->limit)
		seq_printf(m, ",size=%lldk", sb->limit << (PAGE_SHIFT - 10));
	if (sb->inode_limit)
		seq_printf(m, ",nr_inodes=%lld", sb->inode_limit);
	seq_printf(m, ",mode=%o,huge=%s", sb->mode,
		   sb->order == PUD_ORDER ? "1G" : sb->order ? "2M" : "never");
	if (!uid_eq(sb->uid, GLOBAL_ROOT_UID))
		seq_printf(m, ",uid=%u", from_kuid_munged(&init_user_ns, sb->uid));
	if (!gid_eq(sb->gid, GLOBAL_ROOT_GID))
		seq_printf(m, ",gid=%u", from_kgid_munged(&init_user_ns, sb->gid));
	return 0;
}

static const struct super_operations morsel_super_operations = {
	.alloc_inode = morsel_alloc_inode,
	.free_inode = morsel_free_inode,
	.evict_inode = morsel_evict_inode,
	.drop_inode = generic_delete_inode,
	.sync_fs = morsel_pmem_sync,
	.statfs = morsel_statfs,
	.show_options = morsel_show_options,
};

enum morsel_option {
	OPTION_GID,
	OPTION_HUGE,
	OPTION_INODES,
	OPTION_MODE,
	OPTION_PMEM,
	OPTION_SIZE,
	OPTION_UID,
};

static const struct constant_table huge_names[] = {
	{ "never", 0 },
	{ "2M", PMD_ORDER },
	{ "1G", PUD_ORDER },
	{}
};

static const struct fs_parameter_spec morsel_parameters[] = {
	fsparam_gid("gid", OPTION_GID),
	fsparam_enum("huge", OPTION_HUGE, huge_names),
	fsparam_string("nr_inodes", OPTION_INODES),
	fsparam_u32oct("mode", OPTION_MODE),
	fsparam_string("pmem", OPTION_PMEM),
	fsparam_string("size", OPTION_SIZE),
	fsparam_uid("uid", OPTION_UID),
	{}
};

/* Parse a number with a suffix, or for a size a percentage of memory. */
static int morsel_parse_amount(struct fs_context *fc, const struct fs_parameter *param,
			       unsigned long long *amount, bool is_size)
{
	char *rest;

	*amount = memparse(param->string, &rest);
	if (is_size && *rest == '%') {
		if (*amount > 100)
			goto wrong;
		*amount = (*amount << PAGE_SHIFT) * totalram_pages() / 100;
		rest++;
	}
	if (!*rest && rest != param->string && *amount <= S64_MAX)
		return 0;
wrong:
	return invalf(fc, "morselfs: %s=%s: not a %s", param->key,
		      param->string, is_size ? "size" : "number");
}

static int morsel_parse_param(struct fs_context *fc, struct fs_parameter *param)
{
	struct morsel_sb *sb = fc->s_fs_info;
	struct fs_parse_result result;
	unsigned long long amount;
	int err, option = fs_parse(fc, morsel_parameters, param, &result);

	switch (option) {
	case OPTION_GID:
		sb->gid = result.gid;
		return 0;
	case OPTION_HUGE:
		sb->order = result.uint_32;
		if (sb->order == PUD_ORDER && !boot_cpu_has(X86_FEATURE_GBPAGES))
			return invalf(fc, "morselfs: huge=1G: not supported by this CPU");
		return 0;
	case OPTION_INODES:
		err = morsel_parse_amount(fc, param, &amount, false);
		sb->inode_limit = amount;
		return err;
	case OPTION_MODE:
		sb->mode = result.uint_32 & 07777;
		return 0;
	case OPTION_PMEM:
		swap(sb->device, param->string);
		return 0;
	case OPTION_SIZE:
		err = morsel_parse_amount(fc, param, &amount, true);
		sb->limit = DIV_ROUND_UP(amount, PAGE_SIZE);
		return err;
	case OPTION_UID:
		sb->uid = result.uid;
		return 0;
	default:
		return option;
	}
}

/**
 * morsel_init_super - set what is the same for all mounts
 * @super: the mount
 *
 * Context: any.
 */
void morsel_init_super(struct super_block *super)
{
	super->s_maxbytes = MAX_LFS_FILESIZE;
	super->s_blocksize = PAGE_SIZE;
	super->s_blocksize_bits = PAGE_SHIFT;
	super->s_magic = MORSELFS_MAGIC;
	super->s_op = &morsel_super_operations;
	super->s_xattr = morsel_xattr_handlers;
	super->s_flags |= SB_POSIXACL;
	super->s_time_gran = 1;
}

static int morsel_fill_super(struct super_block *super, struct fs_context *fc)
{
	struct morsel_sb *sb = super->s_fs_info;
	struct inode *root;

	morsel_init_super(super);
	root = morsel_new_inode(super, NULL, S_IFDIR | sb->mode, 0);
	if (IS_ERR(root))
		return PTR_ERR(root);
	root->i_uid = sb->uid;
	root->i_gid = sb->gid;
	super->s_root = d_make_root(root);
	return super->s_root ? 0 : -ENOMEM;
}

static int morsel_get_tree(struct fs_context *fc)
{
	const struct morsel_sb *sb = fc->s_fs_info;

	if (sb->device)
		return morsel_pmem_get_tree(fc);
	return get_tree_nodev(fc, morsel_fill_super);
}

/* Change the limits of a mount, but not to below the current use. */
static int morsel_reconfigure(struct fs_context *fc)
{
	struct morsel_sb *sb = morsel_sb_of(fc->root->d_sb);
	struct morsel_sb *wanted = fc->s_fs_info;

	if (sb->pmem)
		return morsel_pmem_reconfigure(fc, sb->pmem);
	if (wanted->limit &&
	    percpu_counter_compare(&sb->used, wanted->limit) > 0)
		return invalf(fc, "morselfs: size: below the used size");
	if (wanted->inode_limit &&
	    percpu_counter_compare(&sb->inodes, wanted->inode_limit) > 0)
		return invalf(fc, "morselfs: nr_inodes: below the used number");
	sb->limit = wanted->limit;
	sb->inode_limit = wanted->inode_limit;
	sb->order = wanted->order;
	return 0;
}

static void morsel_free_sb(struct morsel_sb *sb)
{
	if (!sb)
		return;
	percpu_counter_destroy(&sb->used);
	percpu_counter_destroy(&sb->inodes);
	kfree(sb->device);
	kfree(sb);
}

static void morsel_free_fc(struct fs_context *fc)
{
	morsel_free_sb(fc->s_fs_info);
}

static const struct fs_context_operations morsel_context_operations = {
	.free = morsel_free_fc,
	.parse_param = morsel_parse_param,
	.get_tree = morsel_get_tree,
	.reconfigure = morsel_reconfigure,
};

static int morsel_init_fs_context(struct fs_context *fc)
{
	struct morsel_sb *sb = kzalloc(sizeof(*sb), GFP_KERNEL);

	if (!sb)
		return -ENOMEM;
	if (percpu_counter_init(&sb->used, 0, GFP_KERNEL) ||
	    percpu_counter_init(&sb->inodes, 0, GFP_KERNEL)) {
		morsel_free_sb(sb);
		return -ENOMEM;
	}
	/* The memory of morsels cannot be reclaimed. */
	sb->limit = totalram_pages() / 2;
	sb->inode_limit = totalram_pages() / 2;
	sb->mode = 0755;
	sb->order = PMD_ORDER;
	sb->uid = current_fsuid();
	sb->gid = current_fsgid();
	if (fc->purpose == FS_CONTEXT_FOR_RECONFIGURE) {
		const struct morsel_sb *old = morsel_sb_of(fc->root->d_sb);

		sb->limit = old->limit;
		sb->inode_limit = old->inode_limit;
		sb->order = old->order;
	}
	fc->s_fs_info = sb;
	fc->ops = &morsel_context_operations;
	return 0;
}

static void morsel_kill_super(struct super_block *super)
{
	struct morsel_sb *sb = super->s_fs_info;

	if (sb->device)
		morsel_pmem_kill(super);
	else
		kill_litter_super(super);
	morsel_free_sb(sb);
}

static struct file_system_type morselfs = {
	.owner = THIS_MODULE,
	.name = "morselfs",
	.init_fs_context = morsel_init_fs_context,
	.parameters = morsel_parameters,
	.kill_sb = morsel_kill_super,
};

static void morsel_init_once(void *object)
{
	struct morsel *morsel = object;

	inode_init_once(&morsel->inode);
}

static int __init morselfs_init(void)
{
	int err;

	morsel_cache = kmem_cache_create("morsel", sizeof(struct morsel), 0,
					 SLAB_RECLAIM_ACCOUNT | SLAB_ACCOUNT,
					 morsel_init_once);
	if (!morsel_cache)
		return -ENOMEM;
	err = percpu_counter_init(&morsel_all_pages, 0, GFP_KERNEL) ?:
	      percpu_counter_init(&morsel_all_tables, 0, GFP_KERNEL);
	return err ?: register_filesystem(&morselfs);
}
fs_initcall(morselfs_init);
