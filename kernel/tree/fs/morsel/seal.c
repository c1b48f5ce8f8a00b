// SPDX-License-Identifier: GPL-2.0-only
/*
 * Seals of a morsel.
 *
 * Changing the access rights of leaves needs the lock of the inode and a closed morsel;
 * see linux/morsel.h.
 */

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/swap.h>

#include <trace/events/morsel.h>

#include "internal.h"
#include "pmem.h"

#define ALL_SEALS	(F_SEAL_SEAL | F_SEAL_EXEC | F_SEAL_SHRINK | F_SEAL_GROW | \
			 MORSEL_NO_WRITES)

/* Number of checks of a seal for the end of a pin, and the interval in ms. */
#define PIN_TRIES	10
#define PIN_PAUSE	15

/*
 * Close the morsel if none of its pages is pinned. A pin can still be taken before the
 * close: get_user_pages_fast() may have read entries of a mapping that was removed
 * since. The flush does not wait for a virtual CPU that does not run, if the hypervisor
 * flushes for it; the grace period of the close does.
 */
static bool morsel_close_unheld(struct morsel *morsel)
{
	if (morsel_is_pinned(morsel))
		return false;
	morsel_close(morsel);
	/* Without mappings of single pages every other reference is a pin. */
	unmap_mapping_pages(morsel->inode.i_mapping, 0, 0, false);
	if (!morsel_is_held(morsel))
		return true;
	morsel_open(morsel);
	return false;
}

/* Exclude all writes, through mappings and by pins. */
static int morsel_seal_writes(struct morsel *morsel)
{
	struct address_space *mapping = morsel->inode.i_mapping;
	int tries, err = mapping_deny_writable(mapping);

	if (err)
		return err;
	for (tries = 0; !morsel_close_unheld(morsel); tries++) {
		/* Per-CPU batches of the LRU lists hold references too. */
		lru_add_drain_all();
		if (tries == PIN_TRIES ||
		    schedule_timeout_killable(msecs_to_jiffies(PIN_PAUSE))) {
			mapping_allow_writable(mapping);
			return -EBUSY;
		}
	}
	/* A sealed morsel is not detached to change it, so its size must not change. */
	WRITE_ONCE(morsel->seals, morsel->seals | F_SEAL_WRITE | F_SEAL_SHRINK |
				  F_SEAL_GROW);
	morsel_protect(morsel);
	morsel_open(morsel);
	WRITE_ONCE(morsel->whole, morsel_find_hole(morsel, 0, ULONG_MAX));
	/* From here on ->mmap() refuses writers. */
	mapping_allow_writable(mapping);
	morsel_count(MORSEL_SEALED);
	trace_morsel_seal(&morsel->inode);
	return 0;
}

static int morsel_add_seals(struct file *file, unsigned int seals)
{
	struct inode *inode = file_inode(file);
	struct morsel *morsel = morsel_of(inode);
	int err = 0;

	if (!(file->f_mode & FMODE_WRITE))
		return -EPERM;
	if (seals & ~ALL_SEALS)
		return -EINVAL;
	inode_lock(inode);
	/* As for a memfd: what may be executed must not change. */
	if (seals & F_SEAL_EXEC && inode->i_mode & 0111)
		seals |= F_SEAL_SHRINK | F_SEAL_GROW | MORSEL_NO_WRITES;
	if (morsel->seals & F_SEAL_SEAL)
		err = -EPERM;
	else if (morsel_sb_of(inode->i_sb)->pmem)
		err = morsel_pmem_seal(inode, &seals);
	else if (seals & ~morsel->seals & F_SEAL_WRITE)
		err = morsel->holds ? -EBUSY : morsel_seal_writes(morsel);
	if (!err)
		WRITE_ONCE(morsel->seals, morsel->seals | seals);
	inode_unlock(inode);
	return err;
}

long __morsel_fcntl(struct file *file, unsigned int cmd, unsigned int arg)
{
	switch (cmd) {
	case F_ADD_SEALS:
		return morsel_add_seals(file, arg);
	case F_GET_SEALS:
		return morsel_of(file_inode(file))->seals;
	default:
		return -EINVAL;
	}
}
