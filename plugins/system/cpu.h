/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One virtual CPU's TLBs and their counters. Independent of QEMU.
 *
 * On a miss the TLB is filled from the guest's own tables. From then on it loses a
 * translation only as hardware does: by eviction, or by an instruction that invalidates
 * it. A translation that the guest forgot to flush thus stays, with its original size.
 *
 * A shadow TLB sees the same accesses and all flushes except those that only a batch of
 * unmaps caused. The additional misses of the real TLB are the flush-induced misses: the
 * upper bound of what lazy flushing can avert. A page that returned in another frame
 * misses in both: its translation had to be flushed in any case.
 *
 * Translations are tagged with their address space, the PCID; global ones have a tag of
 * their own. A PCID is stored in the address's upper 16 bits, which are equal in all
 * canonical addresses.
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
	/* Misses in the range that a program selected for watching. */
	WATCHED_LOAD_MISSES,
	WATCHED_STORE_MISSES,
	WATCHED_FETCH_MISSES,
	/* Walks by the size of the page found, and walks that found none. */
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
	/* Page allocations made by the lab: number, failures, and instructions. */
	ALLOCS,
	ALLOC_FAILURES,
	ALLOC_INSTRUCTIONS,
	INTERRUPTS,
	/*
	 * Flush interrupts received by this CPU, by cause: a batch of unmaps for which
	 * all pages, some or none could have waited (toll_lab_mm.h), compaction, a batch
	 * of compaction for which all pages could have waited, the drain of a pool, a
	 * change of an address space, the scan of NUMA balancing, a change of the
	 * kernel's own mappings.
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
	/* Pages that reclaim and migration unmapped, by whether they were writable. */
	UNMAPPED_RO,
	UNMAPPED_RW,
	COUNTERS,
};

/* Offset of the shadow's counters. */
enum { TO_SHADOW = SHADOW_DTLB_LOAD_MISSES - DTLB_LOAD_MISSES };

/* Recently used pages and their position in the first level. */
enum { RECENT = 512 };

struct recent {
	uint64_t page;	  /* page number + 1; 0: nothing */
	uint64_t encoded; /* page number of the address with its space */
	uint32_t where;
	enum tlb_size size;
};

/* Position of a page at its last walk; see is_stale() in cpu.c. */
enum { FRAMES = 1 << 14 };

struct known {
	uint64_t page; /* encoded address, by the page's size */
	uint64_t frame;
};

/* A TLB with its cache of recent pages. */
struct view {
	struct tlb *tlb;
	struct recent recent[TLB_SIDES][RECENT];
};

struct cpu {
	struct view real, shadow;
	struct known frames[FRAMES];
	/* Root table of the current address space, and its PCID. */
	uint64_t cr3;
	uint16_t pcid;
	/* Whether the next write of CR3 has bit 63 set. */
	bool is_keep_announced;
	/* Address range with additional miss counters. */
	uint64_t watch_start, watch_end;
	uint64_t counts[COUNTERS];
	struct walker walker;
};

enum access { ACCESS_LOAD, ACCESS_STORE, ACCESS_CODE };

/* False if memory is short or the geometry is invalid. */
bool cpu_init(struct cpu *cpu, const struct tlb_config *config, read_entry read, void *context);
void cpu_destroy(struct cpu *cpu);

void cpu_access(struct cpu *cpu, enum access access, uint64_t address);

/* Invalidations. `is_batch`: caused only by a batch of unmaps. */
void cpu_invlpg(struct cpu *cpu, uint64_t address, bool is_batch);
/*
 * New CR3, with its PCID; keeps its translations if the value has bit 63 set or
 * DECODED_KEEP announced it.
 */
void cpu_write_cr3(struct cpu *cpu, uint64_t value, bool is_batch);
/* A change of CR4.PGE: flushes everything including global translations. */
void cpu_flush_global(struct cpu *cpu, bool is_batch);

#endif
