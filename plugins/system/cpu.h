/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One virtual CPU's TLBs and what is counted of them. Nothing of QEMU here.
 *
 * The TLB is filled from the guest's own tables at the moment of a miss, and
 * from then on only loses a translation as hardware does: by eviction, or by
 * an instruction that invalidates it. So a translation that the guest forgot
 * to flush stays, with the size that it had.
 *
 * Beside the real TLB a shadow TLB sees the same accesses and all flushes but
 * those that only a batch of unmaps caused. What the real one misses more are
 * the flush-induced misses: all that flushing lazily can avert. A page that came
 * back elsewhere misses in both: its translation had to go in any case.
 *
 * Translations carry the address space that they belong to, the PCID; global
 * ones belong to a space of their own. A PCID is kept in the address's upper
 * 16 bits, which are the same in all canonical addresses.
 */
#ifndef TOLL_CPU_H
#define TOLL_CPU_H

#include "../tlb-model/tlb.h"
#include "walk.h"

#include <stdbool.h>
#include <stdint.h>

/* The first four are also counted in the shadow TLB, in the same order. */
enum counter {
	DTLB_LOAD_MISSES,
	DTLB_STORE_MISSES,
	ITLB_MISSES,
	WALK_STEPS,
	SHADOW_DTLB_LOAD_MISSES,
	SHADOW_DTLB_STORE_MISSES,
	SHADOW_ITLB_MISSES,
	SHADOW_WALK_STEPS,
	/* Misses in the range that a program asked to watch. */
	WATCHED_LOAD_MISSES,
	WATCHED_STORE_MISSES,
	WATCHED_FETCH_MISSES,
	/* Walks by the size of the page found, and those that found none. */
	WALKS_4K,
	WALKS_2M,
	WALKS_1G,
	WALKS_UNMAPPED,
	INVLPGS,
	FULL_FLUSHES,
	CR3_WRITES,
	INSTRUCTIONS_USER,
	INSTRUCTIONS_KERNEL,
	PAGE_FAULTS,
	FAULT_INSTRUCTIONS,
	/* Allocations of pages that the lab made, those that failed, and what they took. */
	ALLOCS,
	ALLOC_FAILURES,
	ALLOC_INSTRUCTIONS,
	INTERRUPTS,
	/*
	 * Interrupts that asked this CPU to flush, by cause: a batch of unmaps of which all
	 * pages, some or none could have waited (toll_lab_mm.h), compaction, a batch of
	 * compaction of which all could have, the drain of a pool, a change of an address space, the scan of NUMA balancing, a change of
	 * the kernel's own mappings.
	 */
	SHOOTDOWNS_ELIGIBLE,
	SHOOTDOWNS_MIXED,
	SHOOTDOWNS_UNMAP,
	SHOOTDOWNS_COMPACTION,
	SHOOTDOWNS_COMPACTION_ELIGIBLE,
	SHOOTDOWNS_DRAIN,
	SHOOTDOWNS_MM,
	SHOOTDOWNS_NUMA,
	SHOOTDOWNS_KERNEL,
	/* Pages that reclaim and migration unmapped, by whether they could be written. */
	UNMAPPED_RO,
	UNMAPPED_RW,
	COUNTERS,
};

/* The counters of the shadow follow at this distance. */
enum { TO_SHADOW = SHADOW_DTLB_LOAD_MISSES - DTLB_LOAD_MISSES };

/* Pages that were used not long ago, and where in the first level they were. */
enum { RECENT = 512 };

struct recent {
	uint64_t page;	  /* page number + 1; 0: nothing */
	uint64_t encoded; /* the address's page with its space */
	uint32_t where;
	enum tlb_size size;
};

/* Where a page was when it was last walked; see is_stale() in cpu.c. */
enum { FRAMES = 1 << 14 };

struct known {
	uint64_t page; /* encoded address, by the page's size */
	uint64_t frame;
};

/* A TLB with its short cut. */
struct view {
	struct tlb *tlb;
	struct recent recent[TLB_SIDES][RECENT];
};

struct cpu {
	struct view real, shadow;
	struct known frames[FRAMES];
	/* The tables of the current address space, and its PCID. */
	uint64_t cr3;
	uint16_t pcid;
	/* The next write of CR3 has bit 63. */
	bool is_keep_announced;
	/* Addresses whose misses are also counted apart. */
	uint64_t watch_start, watch_end;
	uint64_t counts[COUNTERS];
	struct walker walker;
};

enum access { ACCESS_LOAD, ACCESS_STORE, ACCESS_CODE };

/* false if memory is short or the shapes are impossible. */
bool cpu_init(struct cpu *cpu, const struct tlb_config *config, read_entry read, void *context);
void cpu_destroy(struct cpu *cpu);

void cpu_access(struct cpu *cpu, enum access access, uint64_t address);

/*
 * What invalidates. `is_batch`: only a batch of unmaps caused it.
 */
void cpu_invlpg(struct cpu *cpu, uint64_t address, bool is_batch);
/* With its PCID; keeps what is there of it if the value has bit 63 or that was announced. */
void cpu_write_cr3(struct cpu *cpu, uint64_t value, bool is_batch);
/* A change of CR4.PGE: everything goes, global translations too. */
void cpu_flush_global(struct cpu *cpu, bool is_batch);

#endif
