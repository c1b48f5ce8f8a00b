// SPDX-License-Identifier: GPL-2.0-only
/* What CPUs may have cached, and how it is invalidated. See world.h. */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define PAGE_OF(address, shift) ((address) & ~((1ull << (shift)) - 1))

bool translation_lives(const struct translation *it)
{
	return it->age == it->cpu->ages[it->space];
}

bool step_lives(const struct step *it)
{
	return it->age == it->cpu->step_ages[it->space];
}

static unsigned int bucket(uint16_t space, uint64_t page, uint8_t shift)
{
	uint64_t key = (page >> shift) * 0x9e3779b97f4a7c15ull ^ space * 0xff51afd7ed558ccdull ^ shift;

	return (key ^ key >> 32) % BUCKETS;
}

/* The list that has all translations of a page; others as well. */
struct translation **cpu_translations(struct cpu *cpu, uint16_t space, uint64_t page, uint8_t shift)
{
	return &cpu->translations[bucket(space, page, shift)];
}

bool translation_is(const struct translation *it, const struct leaf *leaf)
{
	return leaf->is_present && it->shift == leaf->shift && it->frame == leaf->frame &&
	       it->is_writable == leaf->is_writable && it->is_user == leaf->is_user &&
	       it->is_executable == leaf->is_executable;
}

static struct translation *new_translation(struct cpu *cpu, uint16_t space, uint64_t page,
					   const struct leaf *leaf, struct frame *frame)
{
	struct translation **first = cpu_translations(cpu, space, page, leaf->shift);
	struct translation *it = calloc(1, sizeof(*it));

	if (!it)
		return NULL;
	*it = (struct translation){
		.page = page,
		.frame = leaf->frame,
		.cpu = cpu,
		.next = *first,
		.space = space,
		.shift = leaf->shift,
		.is_writable = leaf->is_writable,
		.is_user = leaf->is_user,
		.is_executable = leaf->is_executable,
	};
	*first = it;
	if (leaf->is_user) {
		it->next_user = frame->users;
		frame->users = it;
	}
	return it;
}

/*
 * The CPU caches a translation. One that it had before is used again, so that their number is
 * that of pages and frames that ever met. False if memory is short.
 */
bool cpu_add_translation(struct cpu *cpu, uint16_t space, uint64_t address, const struct leaf *leaf)
{
	uint64_t page = PAGE_OF(address, leaf->shift);
	struct frame *frame = world_frame(cpu->world, leaf->frame);
	struct translation *it = *cpu_translations(cpu, space, page, leaf->shift);

	while (it && !(it->space == space && it->page == page && translation_is(it, leaf)))
		it = it->next;
	if (!frame)
		return false;
	if (!it)
		it = new_translation(cpu, space, page, leaf, frame);
	if (!it)
		return false;
	it->made_at = cpu->world->clock;
	it->change = cpu->world->changes;
	memcpy(it->path, leaf->path, sizeof(it->path));
	if (translation_lives(it))
		return true;
	it->age = cpu->ages[space];
	it->was_reported = false;
	it->made = cpu_event_without_calls(cpu);
	return true;
}

/* The CPU caches the tables on the way to a page. */
void cpu_add_steps(struct cpu *cpu, uint64_t address, const struct leaf *leaf)
{
	for (unsigned int i = 0; i < leaf->count; i++) {
		uint8_t shift = leaf->steps[i].shift;
		uint64_t region = PAGE_OF(address, shift), table = leaf->steps[i].table;
		struct step **first = &cpu->steps[bucket(cpu->pcid, region, shift)], *it = *first;
		struct frame *frame = world_frame(cpu->world, table);

		while (it && (it->space != cpu->pcid || it->region != region || it->shift != shift ||
			      it->table != table))
			it = it->next;
		if (!it) {
			it = frame ? calloc(1, sizeof(*it)) : NULL;
			if (!it) {
				cpu->world->lost++;
				return;
			}
			it->cpu = cpu;
			it->space = cpu->pcid;
			it->region = region;
			it->shift = shift;
			it->table = table;
			it->next = *first;
			*first = it;
			it->next_of_table = frame->steps;
			frame->steps = it;
		}
		it->age = cpu->step_ages[cpu->pcid];
		it->made_at = cpu->world->clock;
	}
}

/* --- invalidation --- */

static void note_flush(struct cpu *cpu)
{
	cpu->world->flushes++;
	__atomic_fetch_add(&cpu->stamp, 1, __ATOMIC_RELAXED);
}

static void begin(struct cpu *cpu)
{
	pthread_mutex_lock(&cpu->world->lock);
	note_flush(cpu);
}

static void end(struct cpu *cpu)
{
	pthread_mutex_unlock(&cpu->world->lock);
}

static void forget_page(struct cpu *cpu, uint16_t space, uint64_t address)
{
	for (uint8_t shift = 12; shift <= 30; shift += 9) {
		uint64_t page = PAGE_OF(address, shift);
		struct translation *it = *cpu_translations(cpu, space, page, shift);

		for (; it; it = it->next)
			if (it->space == space && it->page == page && it->shift == shift)
				it->age = cpu->ages[space] - 1;
	}
}

void cpu_invalidate_address(struct cpu *cpu, uint64_t address)
{
	begin(cpu);
	forget_page(cpu, cpu->pcid, address);
	forget_page(cpu, GLOBAL_SPACE, address);
	/* "all entries in all paging-structure caches associated with the current PCID" */
	cpu->step_ages[cpu->pcid]++;
	end(cpu);
}

void cpu_invalidate_address_of(struct cpu *cpu, uint16_t space, uint64_t address)
{
	begin(cpu);
	forget_page(cpu, space, address);
	cpu->step_ages[space]++;
	end(cpu);
}

static void forget_space(struct cpu *cpu, uint16_t space)
{
	cpu->ages[space]++;
	cpu->step_ages[space]++;
}

void cpu_forget_space(struct cpu *cpu, uint16_t space)
{
	note_flush(cpu);
	forget_space(cpu, space);
}

/*
 * "a page-fault exception resulting from an attempt to use a linear address will invalidate any
 * TLB entries that are for a page number corresponding to that linear address", and the entries of
 * the paging-structure caches that would be used for it. Its other steps may stay.
 */
void cpu_forget_faulting(struct cpu *cpu, uint16_t space, uint64_t address)
{
	__atomic_fetch_add(&cpu->stamp, 1, __ATOMIC_RELAXED);
	forget_page(cpu, space, address);
	for (uint8_t shift = 21; shift <= 48; shift += 9) {
		uint64_t region = PAGE_OF(address, shift);
		struct step *it = cpu->steps[bucket(space, region, shift)];

		for (; it; it = it->next)
			if (it->space == space && it->region == region && it->shift == shift)
				it->age = cpu->step_ages[space] - 1;
	}
}

void cpu_invalidate_space(struct cpu *cpu, uint16_t space)
{
	begin(cpu);
	forget_space(cpu, space);
	end(cpu);
}

void cpu_invalidate_all(struct cpu *cpu, bool with_global)
{
	begin(cpu);
	for (unsigned int space = 0; space < (with_global ? SPACES : GLOBAL_SPACE); space++)
		forget_space(cpu, space);
	end(cpu);
}
