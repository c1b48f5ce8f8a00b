/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A model of the TLBs of one x86-64 core. Independent of QEMU.
 *
 * Two levels. The first has an array per page size, for data and for code. The second
 * serves both sides; it has one array that 4 KiB and 2 MiB pages share, or one for each;
 * 1 GiB pages have their own. A page maps to set (page number mod sets) of its array, and
 * each set is kept in true least-recently-used order (hardware uses unpublished tree
 * approximations of it).
 *
 * A walk fills both levels. The levels evict independently: neither includes the other.
 * Two paging-structure caches, for page directory entries (2 MiB of address space each)
 * and page-directory-pointer entries (1 GiB each), determine the number of table entries
 * that a walk reads.
 */
#ifndef TOLL_TLB_H
#define TOLL_TLB_H

#include <stdbool.h>
#include <stdint.h>

enum tlb_size { TLB_4K, TLB_2M, TLB_1G, TLB_SIZES };

/* The level that held a translation. */
enum tlb_level { TLB_L1, TLB_L2, TLB_WALK };

enum tlb_side { TLB_DATA, TLB_CODE, TLB_SIDES };

/* One array; zero entries: the array does not exist. */
struct tlb_shape {
	uint32_t entries;
	uint32_t ways;
};

struct tlb_config {
	struct tlb_shape l1[TLB_SIZES];
	struct tlb_shape l1_code[TLB_SIZES];
	struct tlb_shape l2[TLB_SIZES];
	/*
	 * 4 KiB and 2 MiB pages are both in l2[TLB_4K]; 2 MiB pages then hold at most
	 * l2[TLB_2M].ways ways of each set.
	 */
	bool l2_shared;
	struct tlb_shape pde;
	struct tlb_shape pdpte;
};

/*
 * Set s has the tags from s * ways on; 0 is empty. `used` is the time of each tag's last
 * use.
 */
struct tlb_array {
	uint32_t sets;
	uint32_t ways;
	uint64_t *tags;
	uint64_t *used;
};

struct tlb {
	struct tlb_array l1[TLB_SIDES][TLB_SIZES];
	struct tlb_array l2[TLB_SIZES];
	struct tlb_array pde;
	struct tlb_array pdpte;
	/* Ways of a set of the shared array that 2 MiB pages may hold. */
	uint32_t shared_2m_ways;
	bool l2_shared;
	/* Counts accesses. */
	uint64_t time;
	/* Number of table entries that the last walk read. */
	unsigned int steps;
	/* After tlb_lookup() or tlb_insert(): position in L1 and size of the page. */
	uint32_t where;
	enum tlb_size size;
};

/*
 * Returns NULL if memory is short or the geometry is invalid (ways must divide entries).
 */
struct tlb *tlb_new(const struct tlb_config *config);
void tlb_free(struct tlb *tlb);

/*
 * Translates the address on a page of this size; evicts and fills as needed. `hint` is
 * the last position of the page in L1, for callers that store it per page and size;
 * otherwise 0.
 */
enum tlb_level tlb_access_slow(struct tlb *tlb, uint64_t address, enum tlb_size size,
			       uint32_t *hint);

/*
 * For callers that learn the page size only from the walk, like hardware: looks the
 * address up under every size. On TLB_WALK there is no translation, and tlb_insert() must
 * be called with the result of the walk. Both together count as one access.
 */
enum tlb_level tlb_lookup(struct tlb *tlb, enum tlb_side side, uint64_t address);
void tlb_insert(struct tlb *tlb, enum tlb_side side, uint64_t address, enum tlb_size size);

/* Removes every translation of a page that overlaps start..end. */
void tlb_invalidate(struct tlb *tlb, uint64_t start, uint64_t end);

/* Removes the paging-structure cache entries of start..end. */
void tlb_invalidate_structures(struct tlb *tlb, uint64_t start, uint64_t end);

static inline unsigned int tlb_shift(enum tlb_size size)
{
	return 12 + 9 * size;
}

static inline uint64_t tlb_tag(uint64_t number, enum tlb_size size)
{
	return number << 2 | (size + 1);
}

/* Equivalent to tlb_access_slow(), and fast if the page is in L1 at its hint. */
static inline enum tlb_level tlb_access(struct tlb *tlb, uint64_t address,
					enum tlb_size size, uint32_t *hint)
{
	struct tlb_array *l1 = &tlb->l1[TLB_DATA][size];
	uint64_t tag = tlb_tag(address >> tlb_shift(size), size);

	if (l1->tags[*hint] == tag) {
		l1->used[*hint] = ++tlb->time;
		return TLB_L1;
	}
	return tlb_access_slow(tlb, address, size, hint);
}

#endif
