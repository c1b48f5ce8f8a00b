// SPDX-License-Identifier: GPL-2.0-only
/* Whether hardware that still has an old translation could be hurt by an access. See world.h. */
#include "world.h"

#include <string.h>

/* An access, and the translation that the tables have now. */
struct access {
	struct cpu *cpu;
	enum kind kind;
	uint64_t address;
	unsigned int size;
	uint16_t pcid;
	bool is_user;
	const struct leaf *now;
};

static uint64_t physical(uint64_t address, uint64_t frame, uint8_t shift)
{
	return frame + (address & ((1ull << shift) - 1));
}

static bool allows(const struct access *it, bool is_writable, bool is_user, bool is_executable)
{
	return (it->kind != KIND_STORE || is_writable) && (!it->is_user || is_user) &&
	       (it->kind != KIND_FETCH || is_executable);
}

static bool is_allowed_now(const struct access *it)
{
	return it->now->is_present &&
	       allows(it, it->now->is_writable, it->now->is_user, it->now->is_executable);
}

/* Whether the old frame differs from the new one in the bytes of the access. */
static bool differs(const struct access *it, const struct translation *old)
{
	uint8_t before[64], after[64];
	struct world *world = it->cpu->world;
	unsigned int size = it->size < sizeof(before) ? it->size : sizeof(before);

	return !world->read(it->cpu->context, physical(it->address, old->frame, old->shift), before,
			    size) ||
	       !world->read(it->cpu->context, physical(it->address, it->now->frame, it->now->shift),
			    after, size) ||
	       memcmp(before, after, size);
}

static bool is_upper_half(uint64_t address)
{
	return address >> 63;
}

/* Rights were taken away, or the page unmapped, by an operation that has ended. */
static bool is_forbidden(const struct access *it, const struct translation *old)
{
	return !is_upper_half(it->address) && !is_allowed_now(it) &&
	       world_is_closed(world_change(it->cpu->world, old));
}

static void report(const struct access *it, enum finding finding, struct translation *old)
{
	old->was_reported = true;
	world_report(it->cpu, finding, old, it->address, it->kind, it->now);
}

static void judge_store(const struct access *it, struct translation *old, bool has_moved)
{
	const struct frame *frame =
		world_frame(it->cpu->world, physical(it->address, old->frame, old->shift));

	if (frame && frame->taken_at > old->made_at)
		report(it, OWNER_WRITE, old);
	else if (frame && frame->freed_at > old->made_at)
		report(it, FREED_WRITE, old);
	else if (has_moved)
		report(it, STALE_WRITE, old);
	else if (is_forbidden(it, old))
		report(it, RIGHTS_WRITE, old);
}

static void judge_load(const struct access *it, struct translation *old, bool has_moved)
{
	const struct frame *frame =
		world_frame(it->cpu->world, physical(it->address, old->frame, old->shift));
	bool is_fetch = it->kind == KIND_FETCH;

	if (frame && frame->taken_at > old->made_at)
		report(it, OWNER_READ, old);
	else if (has_moved && differs(it, old))
		report(it, is_fetch ? STALE_FETCH : STALE_READ, old);
	else if (is_fetch && it->now->is_present && is_forbidden(it, old))
		report(it, RIGHTS_FETCH, old);
	else
		it->cpu->legal++;
}

/* Kernel addresses have no owners: frames change them while vmalloc's flush waits. */
static bool is_judged(const struct access *it, const struct translation *old)
{
	return !is_upper_half(it->address) || it->now->is_present || old->is_user;
}

static void judge(const struct access *it, struct translation *old)
{
	bool has_moved = it->now->is_present &&
			 physical(it->address, old->frame, old->shift) !=
				 physical(it->address, it->now->frame, it->now->shift);

	if (!allows(it, old->is_writable, old->is_user, old->is_executable))
		return;
	if (!has_moved && is_allowed_now(it))
		return;
	it->cpu->stale++;
	if (old->was_reported || !is_judged(it, old))
		return;
	if (it->kind == KIND_STORE)
		judge_store(it, old, has_moved);
	else
		judge_load(it, old, has_moved);
}

/* Judges what the CPU may have in a space. Returns the number of old translations. */
static unsigned int judge_space(const struct access *it, uint16_t space)
{
	unsigned int count = 0;

	for (uint8_t shift = 12; shift <= 30; shift += 9) {
		uint64_t page = it->address & ~((1ull << shift) - 1);
		struct translation *old = *cpu_translations(it->cpu, space, page, shift);

		for (; old; old = old->next) {
			if (old->page != page || old->space != space || old->shift != shift ||
			    !translation_lives(old) || translation_is(old, it->now))
				continue;
			count++;
			judge(it, old);
		}
	}
	return count;
}

static unsigned int judge_access(const struct access *it)
{
	return judge_space(it, it->pcid) +
	       (is_upper_half(it->address) ? judge_space(it, GLOBAL_SPACE) : 0);
}

void cpu_access_slowly(struct cpu *cpu, enum kind kind, uint64_t address, unsigned int size)
{
	struct settled *settled = &cpu->settled[kind][address >> 12 & (SETTLED - 1)];
	uint64_t stamp = __atomic_load_n(&cpu->stamp, __ATOMIC_RELAXED);
	struct leaf now;
	struct access access = { cpu, kind, address, size, cpu->pcid, cpu->is_user, &now };

	pthread_mutex_lock(&cpu->world->lock);
	now = cpu_walk(cpu, cpu->root, address);
	cpu_add_steps(cpu, address, &now);
	if (!judge_access(&access) && now.is_present)
		*settled = (struct settled){ address >> 12, stamp };
	if (is_allowed_now(&access) &&
	    !cpu_add_translation(cpu, now.is_global ? GLOBAL_SPACE : cpu->pcid, address, &now))
		cpu->world->lost++;
	pthread_mutex_unlock(&cpu->world->lock);
}

/* Bits of the error code of a page fault. */
enum { FAULT_WRITE = 1 << 1, FAULT_USER = 1 << 2, FAULT_FETCH = 1 << 4 };

void cpu_fault(struct cpu *cpu, uint64_t address, uint64_t code)
{
	enum kind kind = code & FAULT_WRITE ? KIND_STORE : code & FAULT_FETCH ? KIND_FETCH : KIND_LOAD;
	bool is_user = code & FAULT_USER;
	/* With page-table isolation the kernel has loaded other tables by now. */
	uint16_t pcid = is_user ? cpu->user_pcid : cpu->pcid;
	struct leaf now;
	struct access access = { cpu, kind, address, 1, pcid, is_user, &now };

	pthread_mutex_lock(&cpu->world->lock);
	now = cpu_walk(cpu, is_user ? cpu->user_root : cpu->root, address);
	judge_access(&access);
	cpu_forget_faulting(cpu, pcid, address);
	pthread_mutex_unlock(&cpu->world->lock);
}
