// SPDX-License-Identifier: GPL-2.0-only
/* Page tables of the guest: copies, walks, and changes. See world.h. */
#include "world.h"

#include <stdlib.h>
#include <string.h>

#define ADDRESS 0x000ffffffffff000ull
#define PRESENT (1ull << 0)
#define WRITABLE (1ull << 1)
#define USER (1ull << 2)
#define LARGE (1ull << 7)
#define GLOBAL (1ull << 8)
#define NO_EXECUTE (1ull << 63)
/* What a translation consists of. Accessed, dirty and the software's bits are not. */
#define TRANSLATION (ADDRESS | PRESENT | WRITABLE | USER | LARGE | GLOBAL | NO_EXECUTE)

struct table *world_table(struct cpu *cpu, uint64_t physical)
{
	struct world *world = cpu->world;
	struct frame *frame = world_frame(world, physical);
	struct table *table;

	if (!frame)
		return NULL;
	if (frame->table)
		return frame->table;
	table = calloc(1, sizeof(*table));
	if (!table || !world->read(cpu->context, physical, table->entries, sizeof(table->entries))) {
		world->lost++;
		free(table);
		return NULL;
	}
	return frame->table = table;
}

void table_free(struct frame *frame)
{
	for (int i = 0; i < 512; i++)
		free(frame->table->changes[i]);
	free(frame->table);
	frame->table = NULL;
}

bool world_is_table(const struct world *world, uint64_t physical)
{
	uint64_t number = physical >> 12;
	const struct frame *chunk =
		number / CHUNK_FRAMES < CHUNKS ? world->chunks[number / CHUNK_FRAMES] : NULL;

	return chunk && chunk[number % CHUNK_FRAMES].table;
}

struct leaf cpu_walk(struct cpu *cpu, uint64_t root, uint64_t address)
{
	struct leaf leaf = { .is_writable = true, .is_user = true, .is_executable = true };
	uint64_t at = root & ADDRESS;

	for (int level = cpu->world->levels - 1; level >= 0; level--) {
		unsigned int shift = 12 + 9 * level, index = address >> shift & 511;
		struct table *table = world_table(cpu, at);
		uint64_t entry = table ? table->entries[index] : 0;

		memmove(leaf.path + 1, leaf.path, sizeof(leaf.path) - sizeof(*leaf.path));
		leaf.path[0] = at + index * 8;
		if (level < cpu->world->levels - 1) {
			leaf.steps[leaf.count].table = at;
			leaf.steps[leaf.count++].shift = shift + 9;
		}
		if (!(entry & PRESENT))
			return leaf;
		leaf.is_writable &= !!(entry & WRITABLE);
		leaf.is_user &= !!(entry & USER);
		leaf.is_executable &= !(entry & NO_EXECUTE);
		at = entry & ADDRESS;
		if (level && !(level <= 2 && entry & LARGE))
			continue;
		leaf.is_present = true;
		leaf.is_global = entry & GLOBAL;
		leaf.shift = shift;
		leaf.frame = at & ~((1ull << shift) - 1);
		return leaf;
	}
	return leaf;
}

/* Settled pages may have an older translation from now on. */
static void unsettle(struct world *world)
{
	for (unsigned int i = 0; i < world->cpus; i++)
		if (world->cpu[i])
			__atomic_fetch_add(&world->cpu[i]->stamp, 1, __ATOMIC_RELAXED);
}

static void note_change(struct cpu *cpu, struct table *table, unsigned int index, uint64_t new)
{
	struct change *change = table->changes[index];

	if (!change)
		change = table->changes[index] = calloc(1, sizeof(*change));
	if (!change) {
		cpu->world->lost++;
		return;
	}
	*change = (struct change){
		.number = ++cpu->world->changes,
		.old = table->entries[index],
		.new = new,
		.event = cpu_event(cpu),
		.task = cpu->task,
		.returns = cpu->task ? cpu->task->returns : 0,
	};
	if (!(new & PRESENT))
		cpu->world->unmaps++;
}

static void store(struct cpu *cpu, struct table *table, unsigned int index, uint64_t new)
{
	uint64_t old = table->entries[index];

	if (old & PRESENT && (old ^ new) & TRANSLATION) {
		note_change(cpu, table, index, new);
		unsettle(cpu->world);
	}
	table->entries[index] = new;
}

void cpu_store_to_table(struct cpu *cpu, uint64_t physical, unsigned int size)
{
	struct world *world = cpu->world;
	struct frame *frame;

	pthread_mutex_lock(&world->lock);
	frame = world_frame(world, physical);
	for (uint64_t at = physical & ~7ull; frame && frame->table && at < physical + size; at += 8) {
		uint64_t new;

		if (world->read(cpu->context, at, &new, sizeof(new)))
			store(cpu, frame->table, at >> 3 & 511, new);
		else
			world->lost++;
	}
	pthread_mutex_unlock(&world->lock);
}

static const struct change *change_of(struct world *world, uint64_t entry)
{
	const struct frame *frame = entry ? world_frame(world, entry) : NULL;

	return frame && frame->table ? frame->table->changes[entry >> 3 & 511] : NULL;
}

const struct change *world_change(struct world *world, const struct translation *old)
{
	const struct change *last = NULL;

	for (int i = 0; i < 5; i++) {
		const struct change *change = change_of(world, old->path[i]);

		if (change && change->number > old->change && (!last || change->number > last->number))
			last = change;
	}
	return last;
}

/*
 * Whether the operation that made a change has ended: its task has returned to user mode
 * since. Tasks of the kernel never do.
 */
bool world_is_closed(const struct change *change)
{
	return change && change->task && change->task->returns != change->returns;
}
