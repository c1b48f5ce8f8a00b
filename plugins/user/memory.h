/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State of the guest's memory: the mapping and the allocation event of an address, and
 * the page size that it has or could have.
 *
 * Updated by the guest's system calls. Threads read under a shared lock, and only when
 * their own small caches miss; each change is numbered, and a thread that sees a new
 * number removes the changed ranges from its caches.
 *
 * A region is huge *as natively* if it lies in one private anonymous mapping (adjacent
 * ones with equal protection and advice are one) and the policy of the machine permits
 * it: advised by MADV_HUGEPAGE or MADV_COLLAPSE with the mode "madvise", not excluded by
 * MADV_NOHUGEPAGE with "always"; never after PR_SET_THP_DISABLE. A heap region that grew
 * in several steps of brk keeps 4 KiB pages until it is advised or collapsed, since its
 * first touch came too early. QEMU's brk ends after about 32 MiB where a native one
 * continues, and malloc then maps memory instead of heap: a mapping that a thread makes
 * right after such a brk is treated as heap. A region is *eligible* if it lies in one
 * private anonymous mapping that is not a stack, or in one shared mapping of anonymous
 * memory or of a file in memory, wherever it is mapped: a plan moves it to where huge pages
 * fit. Natively shared memory has huge pages only after MADV_COLLAPSE. MAP_HUGETLB memory
 * has its own page size in both cases.
 */
#ifndef TOLL_MEMORY_H
#define TOLL_MEMORY_H

#include "../tlb-model/tlb.h"
#include "recording.h"

#include <stdbool.h>
#include <stdint.h>

enum thp_mode { THP_NEVER, THP_MADVISE, THP_ALWAYS };

/* Properties of a page. */
struct lookup {
	/* Its counters; NULL: not counted. */
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
	/* For mmap: the file's path, read while the descriptor was certainly open. */
	char path[RECORDING_PATH];
	/* For mmap: whether the file lies in memory (tmpfs, memfd). */
	bool in_memory;
	/*
	 * Whether the thread's previous call was a brk that did not get all it requested.
	 */
	bool short_of_heap;
};

/*
 * Called before the system call: memory that it frees must no longer be found when
 * another thread's call reuses it.
 */
void memory_before(struct memory_call *call);
void memory_after(struct memory_call *call, int64_t result);

/* A change of the mappings. */
struct change {
	uint64_t start, end;
	/* Whether translations were dropped too, not only cached properties. */
	bool invalidates;
};

/* The number of changes so far. */
extern uint64_t memory_changes;
static inline uint64_t memory_version(void)
{
	return __atomic_load_n(&memory_changes, __ATOMIC_ACQUIRE);
}

/* Returns change `number`; false if it is too old (then everything changed). */
bool memory_change(uint64_t number, struct change *change);

/* At the end: records which pages of the live blocks are present. */
void memory_scan_all(void);

#endif
