/* SPDX-License-Identifier: GPL-2.0-only */
/* One virtual CPU's TLBs: see cpu.h. */
#include "cpu.h"

#include <string.h>

#define SPACE_SHIFT 48
#define ADDRESS_BITS ((1ull << SPACE_SHIFT) - 1)
#define GLOBAL_SPACE 0xfff
#define PCID_BITS 0xfff
#define CR3_TABLE 0x000ffffffffff000ull
#define CR3_KEEP (1ull << 63)
#define PAGE_SHIFT 12

bool cpu_init(struct cpu *cpu, const struct tlb_config *config, read_entry read, void *context)
{
	memset(cpu, 0, sizeof(*cpu));
	walker_init(&cpu->walker, read, context);
	cpu->real.tlb = tlb_new(config);
	cpu->shadow.tlb = tlb_new(config);
	return cpu->real.tlb && cpu->shadow.tlb;
}

void cpu_destroy(struct cpu *cpu)
{
	tlb_free(cpu->real.tlb);
	tlb_free(cpu->shadow.tlb);
}

static uint64_t encode(uint64_t address, uint64_t space)
{
	return (address & ADDRESS_BITS) | space << SPACE_SHIFT;
}

static bool is_upper_half(uint64_t address)
{
	return address >> 63;
}

static struct recent *slot(struct view *view, enum tlb_side side, uint64_t address)
{
	return &view->recent[side][(address >> PAGE_SHIFT) % RECENT];
}

/* Whether the page is at its last position, for this address space. */
static bool is_in_place(const struct cpu *cpu, struct view *view, enum tlb_side side,
			uint64_t address)
{
	struct recent *recent = slot(view, side, address);
	uint64_t space = recent->encoded >> SPACE_SHIFT;
	struct tlb *tlb = view->tlb;
	struct tlb_array *l1;
	uint64_t tag;

	if (recent->page != (address >> PAGE_SHIFT) + 1 ||
	    (space != cpu->pcid && space != GLOBAL_SPACE))
		return false;
	l1 = &tlb->l1[side][recent->size];
	tag = tlb_tag(recent->encoded >> tlb_shift(recent->size), recent->size);
	if (l1->tags[recent->where] != tag)
		return false;
	l1->used[recent->where] = ++tlb->time;
	return true;
}

static void remember(struct view *view, enum tlb_side side, uint64_t address, uint64_t encoded)
{
	*slot(view, side, address) = (struct recent){
		.page = (address >> PAGE_SHIFT) + 1,
		.encoded = encoded,
		.where = view->tlb->where,
		.size = view->tlb->size,
	};
}

static bool lookup_in(struct view *view, enum tlb_side side, uint64_t address, uint64_t space)
{
	uint64_t encoded = encode(address, space);

	if (tlb_lookup(view->tlb, side, encoded) == TLB_WALK)
		return false;
	remember(view, side, address, encoded);
	return true;
}

/* Linux has global translations only in the upper half. */
static bool lookup(struct cpu *cpu, struct view *view, enum tlb_side side, uint64_t address)
{
	return (is_upper_half(address) && lookup_in(view, side, address, GLOBAL_SPACE)) ||
	       lookup_in(view, side, address, cpu->pcid);
}

static void insert(struct cpu *cpu, struct view *view, enum tlb_side side, uint64_t address,
		   const struct leaf *leaf)
{
	uint64_t encoded = encode(address, leaf->global ? GLOBAL_SPACE : cpu->pcid);

	tlb_insert(view->tlb, side, encoded, leaf->size);
	remember(view, side, address, encoded);
}

/* One access in one TLB; true on a miss. */
static bool misses(struct cpu *cpu, struct view *view, enum access access, uint64_t address)
{
	enum tlb_side side = access == ACCESS_CODE ? TLB_CODE : TLB_DATA;

	return !is_in_place(cpu, view, side, address) && !lookup(cpu, view, side, address);
}

static void fill(struct cpu *cpu, struct view *view, enum access access, uint64_t address,
		 const struct leaf *leaf, unsigned int counters)
{
	insert(cpu, view, access == ACCESS_CODE ? TLB_CODE : TLB_DATA, address, leaf);
	cpu->counts[counters + access]++;
	cpu->counts[counters + WALK_STEPS] += view->tlb->steps;
}

static uint64_t page_of(const struct cpu *cpu, uint64_t address, const struct leaf *leaf)
{
	uint64_t encoded = encode(address, leaf->global ? GLOBAL_SPACE : cpu->pcid);

	return encoded & ~((1ull << tlb_shift(leaf->size)) - 1);
}

static struct known *known(struct cpu *cpu, uint64_t page, enum tlb_size size)
{
	uint64_t number = page >> tlb_shift(size);

	return &cpu->frames[(number ^ number >> 14 ^ page >> SPACE_SHIFT) % FRAMES];
}

/* Whether the shadow's translation points to a frame that the page has left. */
static bool is_stale(struct cpu *cpu, uint64_t address, const struct leaf *leaf)
{
	uint64_t page = page_of(cpu, address, leaf);
	const struct known *known_page = known(cpu, page, leaf->size);

	return known_page->page == page && known_page->frame != leaf->frame;
}

static void note_frame(struct cpu *cpu, uint64_t address, const struct leaf *leaf)
{
	uint64_t page = page_of(cpu, address, leaf);

	*known(cpu, page, leaf->size) = (struct known){ page, leaf->frame };
}

void cpu_access(struct cpu *cpu, enum access access, uint64_t address)
{
	bool in_real = !misses(cpu, &cpu->real, access, address);
	bool in_shadow = !misses(cpu, &cpu->shadow, access, address);
	struct leaf leaf;

	if (in_real && in_shadow)
		return;
	if (!walk(&cpu->walker, cpu->cr3, address, &leaf)) {
		cpu->counts[WALKS_UNMAPPED]++; /* no translation to insert */
		return;
	}
	if (in_shadow && is_stale(cpu, address, &leaf)) {
		uint64_t page = page_of(cpu, address, &leaf);

		tlb_invalidate(cpu->shadow.tlb, page, page + (1ull << tlb_shift(leaf.size)));
		in_shadow = false;
	}
	note_frame(cpu, address, &leaf);
	if (!in_shadow)
		fill(cpu, &cpu->shadow, access, address, &leaf, TO_SHADOW);
	if (in_real)
		return;
	fill(cpu, &cpu->real, access, address, &leaf, 0);
	cpu->counts[WALKS_4K + leaf.size]++;
	if (address >= cpu->watch_start && address < cpu->watch_end)
		cpu->counts[WATCHED_LOAD_MISSES + access]++;
}

/*
 * Invalidates entries in the real TLB, and in the shadow unless a batch of unmaps caused
 * it.
 */
static void in_both(struct cpu *cpu, bool is_batch, void (*act)(struct tlb *, uint64_t, uint64_t),
		    uint64_t start, uint64_t end)
{
	walker_forget(&cpu->walker);
	act(cpu->real.tlb, start, end);
	if (!is_batch)
		act(cpu->shadow.tlb, start, end);
}

static void forget_space(struct cpu *cpu, bool is_batch, uint64_t space)
{
	in_both(cpu, is_batch, tlb_invalidate, space << SPACE_SHIFT, (space + 1) << SPACE_SHIFT);
}

void cpu_invlpg(struct cpu *cpu, uint64_t address, bool is_batch)
{
	uint64_t local = encode(address, cpu->pcid), global = encode(address, GLOBAL_SPACE);
	uint64_t space = (uint64_t)cpu->pcid << SPACE_SHIFT;

	cpu->counts[INVLPGS]++;
	in_both(cpu, is_batch, tlb_invalidate, local, local + 1);
	in_both(cpu, is_batch, tlb_invalidate, global, global + 1);
	/* "all entries in all paging-structure caches associated with the current PCID" */
	in_both(cpu, is_batch, tlb_invalidate_structures, space, space + ADDRESS_BITS + 1);
}

void cpu_write_cr3(struct cpu *cpu, uint64_t value, bool is_batch)
{
	bool keeps = cpu->is_keep_announced || value & CR3_KEEP;

	cpu->is_keep_announced = false;
	cpu->cr3 = value & CR3_TABLE;
	cpu->pcid = value & PCID_BITS;
	cpu->counts[CR3_WRITES]++;
	if (keeps)
		return;
	cpu->counts[FULL_FLUSHES]++;
	forget_space(cpu, is_batch, cpu->pcid);
}

void cpu_flush_global(struct cpu *cpu, bool is_batch)
{
	cpu->counts[FULL_FLUSHES]++;
	in_both(cpu, is_batch, tlb_invalidate, 0, (uint64_t)(GLOBAL_SPACE + 1) << SPACE_SHIFT);
}
