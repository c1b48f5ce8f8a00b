/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the guest's memory is: which mapping and which allocation event an
 * address belongs to, and the page size that it has or could have.
 *
 * Fed by the guest's system calls. Threads read under a shared lock, and only
 * when their own small caches miss; each change is numbered, and a thread that
 * sees a new number takes the changed ranges out of its caches.
 *
 * A region is huge *as natively* if it lies in one private anonymous mapping
 * (neighbours with equal protection and advice are one) and the policy of the
 * machine lets it be: advised by MADV_HUGEPAGE or MADV_COLLAPSE with the mode
 * "madvise", not forbidden by MADV_NOHUGEPAGE with "always"; never after
 * PR_SET_THP_DISABLE. A heap region that grew in several steps of brk stays
 * small until it is advised or collapsed, since its first touch came too early.
 * QEMU's brk ends after some 32 MiB where a native one goes on, and malloc then maps
 * memory in the place of heap: what a thread maps right after such a brk is heap here too.
 * It is *eligible* if it lies in one private anonymous mapping that is no stack.
 * MAP_HUGETLB memory has its own page size in both readings.
 */
#ifndef TOLL_MEMORY_H
#define TOLL_MEMORY_H

#include "../tlb-model/tlb.h"
#include "recording.h"

#include <stdbool.h>
#include <stdint.h>

enum thp_mode { THP_NEVER, THP_MADVISE, THP_ALWAYS };

/* What is known of a page. */
struct lookup {
	/* Where it is counted; NULL: nowhere. */
	struct page *page;
	enum tlb_size native;
	enum tlb_size eligible;
};

void memory_init(enum thp_mode mode);

struct lookup memory_lookup(uint64_t address);

/* A system call and its result, by a thread of the guest. */
struct memory_call {
	int64_t number;
	uint64_t a[6];
	/* Of an mmap: the file's path, read while the descriptor was surely open. */
	char path[RECORDING_PATH];
	/* The thread's call before this one was a brk that did not get all it asked for. */
	bool short_of_heap;
};

/* Before the call: what it frees must not be found by another thread's call any more. */
void memory_before(struct memory_call *call);
void memory_after(struct memory_call *call, int64_t result);

/* A change of the mappings. */
struct change {
	uint64_t start, end;
	/* Translations are gone too, not only our knowledge of the pages. */
	bool invalidates;
};

/* The number of changes so far. */
extern uint64_t memory_changes;
static inline uint64_t memory_version(void)
{
	return __atomic_load_n(&memory_changes, __ATOMIC_ACQUIRE);
}

/* Gives change `number`; false if it is too long ago (then everything changed). */
bool memory_change(uint64_t number, struct change *change);

/* At the end: notes which pages of the living blocks are present. */
void memory_scan_all(void);

#endif
