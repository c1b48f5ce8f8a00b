/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One simulated core per thread of the guest: two TLB models that see the same accesses,
 * one with the page sizes of a native run and one with every eligible region huge; counts
 * go to the recording.
 *
 * Sampling: each core cycles through idle, warming and counting phases of random length
 * (0.5 to 1.5 times the mean). While idle nothing is modelled; the TLBs keep their
 * content. Warming runs the models without counting. The ratio of all accesses to those
 * while counting scales counts up.
 */
#ifndef TOLL_CORE_H
#define TOLL_CORE_H

#include "flow.h"
#include "memory.h"
#include "options.h"
#include "reuse.h"

#include <stdbool.h>
#include <stdint.h>

#define CORES 8192
#define CORE_PAGES 1024u

/*
 * Number of accesses that an idle core skips until its next check: the only data that the
 * callback touches while idle. 0 unless idle.
 */
struct countdown {
	int64_t left;
} __attribute__((aligned(64)));

extern struct countdown core_idle[CORES];

enum phase { PHASE_IDLE, PHASE_WARM, PHASE_COUNT };

/* Cached data about a page. */
struct core_page {
	/* Page number + 1; 0: empty. */
	uint64_t key;
	struct page *page;
	/* Position of the page in the first level of the two models. */
	uint32_t native_hint, huge_hint;
	uint8_t native, eligible;
};

struct core_totals {
	uint64_t seen, counted, accesses, walks, walks_huge, windows;
};

struct core {
	/* Accesses until the next phase, unless idle: in that case core_idle has them. */
	int64_t left;
	enum phase phase;
	uint32_t index;
	/* Number of accesses at the start of this phase. */
	int64_t length;
	uint64_t version;
	uint64_t random;
	struct tlb *native, *huge;
	struct reuse *reuse;
	struct core_totals totals;
	struct memory_call call;
	struct core_page pages[CORE_PAGES];
};

/* False: the TLB cannot be created. */
bool core_init(const struct options *options);

/* Returns NULL if memory is short. The index is below CORES. */
struct core *core_new(uint32_t index);
/* Adds new counts to the recording's totals. */
void core_publish(struct core *core);
void core_free(struct core *core);

void core_next_phase(struct core *core);

/* From now on more than one thread counts. Call before the second thread starts. */
void core_share(void);

/*
 * Models an access of `size` bytes by the instruction `site`, and counts it in a counting
 * phase.
 */
void core_access(struct core *core, uint64_t address, unsigned int size,
		 const struct flow_site *site);

/* Writes the rest of the trace. */
void core_finish(void);

#endif
