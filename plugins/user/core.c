/* SPDX-License-Identifier: GPL-2.0-only */
/* One simulated core: see core.h. */
#include "core.h"

#include "trace.h"

#include <stdlib.h>
#include <string.h>

/* Maximum length of a counting window, so that a killed program leaves totals. */
#define PUBLISH_EVERY 65536

struct countdown core_idle[CORES];

static const struct options *options;

bool core_init(const struct options *all)
{
	struct tlb *tlb = tlb_new(&all->tlb);

	options = all;
	tlb_free(tlb);
	return tlb != NULL;
}

static uint64_t next_random(struct core *core)
{
	uint64_t x = core->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return core->random = x;
}

/* Returns a random length between 0.5 and 1.5 times the mean. */
static int64_t jitter(struct core *core, uint64_t mean)
{
	uint64_t half = mean / 2;
	uint64_t length = half + next_random(core) % (mean + 1);

	return length ? length : 1;
}

static void begin(struct core *core, enum phase phase, int64_t length)
{
	core->phase = phase;
	core->length = length;
	core->left = length;
	core_idle[core->index].left = phase == PHASE_IDLE ? length : 0;
}

static void begin_count(struct core *core)
{
	if (options->sample == 1) {
		begin(core, PHASE_COUNT, PUBLISH_EVERY);
		return;
	}
	core->totals.windows++;
	begin(core, PHASE_COUNT, jitter(core, options->window));
}

struct core *core_new(uint32_t index)
{
	struct core *core = calloc(1, sizeof(*core));

	if (!core)
		return NULL;
	core->index = index;
	core->random = 0x9e3779b97f4a7c15ull * (index + 1);
	core->version = memory_version();
	core->native = tlb_new(&options->tlb);
	core->huge = tlb_new(&options->tlb);
	core->reuse = reuse_new();
	if (!core->native || !core->huge || !core->reuse) {
		core_free(core);
		return NULL;
	}
	begin_count(core);
	return core;
}

void core_free(struct core *core)
{
	tlb_free(core->native);
	tlb_free(core->huge);
	reuse_free(core->reuse);
	free(core);
}

static bool shared;

void core_share(void)
{
	shared = true;
}

static void add(uint64_t *to, uint64_t value)
{
	if (shared)
		__atomic_add_fetch(to, value, __ATOMIC_RELAXED);
	else
		*to += value;
}

static void add_small(uint32_t *to, uint32_t value)
{
	if (shared)
		__atomic_add_fetch(to, value, __ATOMIC_RELAXED);
	else
		*to += value;
}

/* Ends the current phase. */
static void settle(struct core *core)
{
	int64_t done;

	if (core->phase == PHASE_IDLE)
		core->left = core_idle[core->index].left;
	done = core->length - core->left;
	core->totals.seen += done;
	if (core->phase == PHASE_COUNT)
		core->totals.counted += done;
	core->length = core->left;
}

void core_publish(struct core *core)
{
	struct core_totals *totals = &core->totals;

	settle(core);
	add(&recording->seen, totals->seen);
	add(&recording->counted, totals->counted);
	add(&recording->accesses, totals->accesses);
	add(&recording->walks, totals->walks);
	add(&recording->walks_huge, totals->walks_huge);
	add(&recording->windows, totals->windows);
	*totals = (struct core_totals){ 0 };
}

void core_next_phase(struct core *core)
{
	uint64_t busy = options->window + options->warm;

	core_publish(core);
	if (options->sample == 1)
		begin_count(core);
	else if (core->phase == PHASE_COUNT)
		begin(core, PHASE_IDLE,
		      jitter(core, busy * (1 / options->sample - 1)));
	else if (core->phase == PHASE_IDLE && options->warm)
		begin(core, PHASE_WARM, jitter(core, options->warm));
	else
		begin_count(core);
}

/* --- changes of the mappings --- */

static void forget_pages(struct core *core, uint64_t start, uint64_t end)
{
	if ((end - start) / PAGE_BYTES >= CORE_PAGES) {
		memset(core->pages, 0, sizeof(core->pages));
		return;
	}
	for (uint64_t page = start / PAGE_BYTES; page < end / PAGE_BYTES; page++)
		if (core->pages[page % CORE_PAGES].key == page + 1)
			core->pages[page % CORE_PAGES].key = 0;
}

static void invalidate(struct core *core, uint64_t start, uint64_t end)
{
	struct trace_record record = {
		.address = start,
		.end = end,
		.core = core->index,
		.kind = TRACE_INVALIDATE,
	};

	tlb_invalidate(core->native, start, end);
	tlb_invalidate(core->huge, start, end);
	if (trace_on)
		trace_write(&record);
}

/* Applies the mapping changes made by any thread. */
static void catch_up(struct core *core, uint64_t version)
{
	struct change change;

	for (; core->version < version; core->version++) {
		if (!memory_change(core->version, &change)) {
			change = (struct change){ 0, 1ull << 47, true };
			core->version = version - 1;
		}
		forget_pages(core, change.start, change.end);
		if (change.invalidates)
			invalidate(core, change.start, change.end);
	}
}

/* --- accesses --- */

static struct core_page *page_of(struct core *core, uint64_t address)
{
	uint64_t number = address / PAGE_BYTES;
	struct core_page *page = &core->pages[number % CORE_PAGES];
	struct lookup found;

	if (page->key == number + 1)
		return page;
	found = memory_lookup(address);
	page->key = number + 1;
	page->page = found.page;
	page->native_hint = page->huge_hint = 0;
	page->native = found.native;
	page->eligible = found.eligible;
	if (address < options->only_start || address >= options->only_end)
		page->page = NULL;
	return page;
}

static void count_walk(struct core *core, struct page *page, uint64_t address,
		       const struct core_page *known, uint8_t class)
{
	add(&page->walks, 1);
	if (class == FLOW_DEPENDENT)
		add_small(&page->dependent, 1);
	else if (class == FLOW_INDEPENDENT)
		add_small(&page->independent, 1);
	if (known->native != TLB_4K)
		return;
	add(&page->reuse_sum, reuse_log2(reuse_walk(core->reuse, address)));
	add_small(&page->reuse_count, 1);
}

/* Counts one access of one page, with the results of the models. */
static void count(struct core *core, const struct core_page *known, uint64_t address,
		  const struct flow_site *site, enum tlb_level native,
		  enum tlb_level huge)
{
	core->totals.accesses += site->weight;
	core->totals.walks += native == TLB_WALK;
	core->totals.walks_huge += huge == TLB_WALK;
	if (!known->page)
		return;
	add(&known->page->accesses, site->weight);
	if (native == TLB_L2) {
		add(&known->page->l2_hits, 1);
		if (huge == TLB_L1)
			add(&known->page->l2_spared, 1);
	} else if (native == TLB_WALK) {
		count_walk(core, known->page, address, known, site->class);
	}
	if (huge == TLB_WALK)
		add(&known->page->walks_huge, 1);
}

static void trace(const struct core *core, const struct core_page *known,
		  uint64_t address, const struct flow_site *site)
{
	struct trace_record record = {
		.address = address,
		.core = core->index,
		.kind = TRACE_ACCESS,
		.native = known->native,
		.huge = known->eligible,
		.class = site->class,
		.weight = site->weight,
		.counted = core->phase == PHASE_COUNT,
	};

	trace_write(&record);
}

static void access_page(struct core *core, uint64_t address,
			const struct flow_site *site)
{
	struct core_page *known = page_of(core, address);
	enum tlb_level native = tlb_access(core->native, address, known->native,
					   &known->native_hint);
	enum tlb_level huge = tlb_access(core->huge, address, known->eligible,
					 &known->huge_hint);

	if (trace_on)
		trace(core, known, address, site);
	if (core->phase == PHASE_COUNT)
		count(core, known, address, site, native, huge);
	else if (native == TLB_WALK && known->native == TLB_4K)
		reuse_walk(core->reuse, address);
}

void core_access(struct core *core, uint64_t address, unsigned int size,
		 const struct flow_site *site)
{
	uint64_t version = memory_version();

	if (core->version != version)
		catch_up(core, version);
	access_page(core, address, site);
	if (address / PAGE_BYTES != (address + size - 1) / PAGE_BYTES)
		access_page(core, (address + size - 1) & -PAGE_BYTES, site);
}

void core_finish(void)
{
	trace_close();
}
