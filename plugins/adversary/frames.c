// SPDX-License-Identifier: GPL-2.0-only
/* The machine, its frames and its tasks. See world.h. */
#include "world.h"

#include <stdlib.h>
#include <string.h>

struct world *world_new(int levels, read_physical read, read_calls calls)
{
	struct world *world = calloc(1, sizeof(*world));

	if (!world)
		return NULL;
	pthread_mutex_init(&world->lock, NULL);
	world->levels = levels;
	world->read = read;
	world->calls = calls;
	return world;
}

void world_begin(struct world *world)
{
	if (world->is_running)
		return;
	clock_gettime(CLOCK_MONOTONIC, &world->began);
	world->is_running = true;
}

struct cpu *world_cpu(struct world *world, unsigned int index, void *context)
{
	struct cpu *cpu = index < WORLD_CPUS ? calloc(1, sizeof(*cpu)) : NULL;

	if (!cpu)
		return NULL;
	cpu->world = world;
	cpu->context = context;
	cpu->index = index;
	/* No page is settled at stamp 0, no translation valid at age 0. */
	cpu->stamp = 1;
	for (unsigned int space = 0; space < SPACES; space++)
		cpu->ages[space] = cpu->step_ages[space] = 1;
	world->cpu[index] = cpu;
	if (index >= world->cpus)
		world->cpus = index + 1;
	return cpu;
}

struct frame *world_frame(struct world *world, uint64_t physical)
{
	uint64_t number = physical >> 12;
	struct frame **chunk;

	if (number / CHUNK_FRAMES >= CHUNKS) {
		world->lost++;
		return NULL;
	}
	chunk = &world->chunks[number / CHUNK_FRAMES];
	if (!*chunk)
		*chunk = calloc(CHUNK_FRAMES, sizeof(**chunk));
	if (!*chunk) {
		world->lost++;
		return NULL;
	}
	return *chunk + number % CHUNK_FRAMES;
}

struct event cpu_event_without_calls(const struct cpu *cpu)
{
	struct event event = { .time = cpu->instructions, .cpu = cpu->index };

	if (cpu->task) {
		event.task = cpu->task->id;
		memcpy(event.name, cpu->task->name, sizeof(event.name));
	}
	return event;
}

struct event cpu_event(struct cpu *cpu)
{
	struct event event = cpu_event_without_calls(cpu);

	event.count = cpu->world->calls(cpu->context, event.calls);
	return event;
}

static struct task *find_task(struct world *world, uint64_t id)
{
	struct task **first = &world->tasks[id % TASK_BUCKETS], *task = *first;

	while (task && task->id != id)
		task = task->next;
	if (task)
		return task;
	task = calloc(1, sizeof(*task));
	if (!task)
		return NULL;
	task->id = id;
	task->next = *first;
	return *first = task;
}

void cpu_run_task(struct cpu *cpu, uint64_t id, const char *name)
{
	pthread_mutex_lock(&cpu->world->lock);
	cpu->task = find_task(cpu->world, id);
	if (cpu->task)
		memcpy(cpu->task->name, name, NAME_LENGTH);
	pthread_mutex_unlock(&cpu->world->lock);
}

static void note(struct cpu *cpu, struct event **where, const struct event *event)
{
	if (!*where)
		*where = malloc(sizeof(**where));
	if (*where)
		**where = *event;
	else
		cpu->world->lost++;
}

/* --- translations of a frame that changes its owner --- */

static void suspect(struct translation *it, uint64_t physical)
{
	it->suspected = physical;
	if (it->is_suspect)
		return;
	it->is_suspect = true;
	it->next_suspect = it->cpu->suspects;
	it->cpu->suspects = it;
}

/* Whether user mode of the CPU could use a translation now. */
static bool is_within_reach(const struct translation *it)
{
	return it->cpu->is_user && (it->space == it->cpu->pcid || it->space == GLOBAL_SPACE);
}

/* Whether a translation is wrong as soon as user mode can use it. */
static bool is_wrong(const struct translation *it, const struct frame *frame)
{
	return translation_lives(it) && !it->was_reported &&
	       (frame->taken_at > it->made_at ||
		(it->is_writable && frame->freed_at > it->made_at));
}

static enum finding finding_of(const struct translation *it, const struct frame *frame)
{
	if (frame->taken_at <= it->made_at)
		return FREED_WRITE;
	return it->is_writable ? OWNER_WRITE : OWNER_READ;
}

static void judge_reach(struct cpu *running, struct translation *it, uint64_t physical)
{
	const struct frame *frame = world_frame(running->world, physical);

	if (!frame || !is_wrong(it, frame))
		return;
	if (!is_within_reach(it)) {
		suspect(it, physical);
		return;
	}
	it->was_reported = true;
	world_report(running, finding_of(it, frame), it, it->page + physical - it->frame,
		     it->is_writable ? KIND_STORE : KIND_LOAD, NULL);
}

/* Large pages are listed at their first frame. */
static void judge_frame(struct cpu *cpu, uint64_t physical)
{
	for (uint8_t shift = 12; shift <= 30; shift += 9) {
		uint64_t first = physical & ~((1ull << shift) - 1);
		struct frame *frame = world_frame(cpu->world, first);

		for (struct translation *it = frame ? frame->users : NULL; it; it = it->next_user)
			if (it->shift == shift)
				judge_reach(cpu, it, physical);
	}
}

/* --- tables --- */

static void suspect_step(struct step *it)
{
	if (it->is_suspect)
		return;
	it->is_suspect = true;
	it->next_suspect = it->cpu->suspect_steps;
	it->cpu->suspect_steps = it;
}

/* A step through a table that was freed: hardware may use it in the loaded space only. */
static void judge_step(struct cpu *running, struct step *it)
{
	const struct frame *frame = world_frame(running->world, it->table);

	if (!frame || !step_lives(it) || frame->freed_at <= it->made_at)
		return;
	if (it->space == it->cpu->pcid)
		world_report_table(running, it);
	else
		suspect_step(it);
}

static void judge_table(struct cpu *cpu, struct frame *frame)
{
	for (struct step *it = frame->steps; it; it = it->next_of_table)
		judge_step(cpu, it);
	table_free(frame);
}

/* --- events --- */

void cpu_frames_taken(struct cpu *cpu, uint64_t number, unsigned int order)
{
	struct world *world = cpu->world;
	struct event event;

	pthread_mutex_lock(&world->lock);
	event = cpu_event(cpu);
	world->taken += 1ull << order;
	world->clock++;
	for (uint64_t at = number << 12; at < (number + (1ull << order)) << 12; at += 1 << 12) {
		struct frame *frame = world_frame(world, at);

		if (!frame)
			break;
		frame->taken_at = world->clock;
		note(cpu, &frame->taken, &event);
		judge_frame(cpu, at);
	}
	pthread_mutex_unlock(&world->lock);
}

void cpu_frames_freed(struct cpu *cpu, uint64_t number, unsigned int order)
{
	struct world *world = cpu->world;
	struct event event;

	pthread_mutex_lock(&world->lock);
	event = cpu_event(cpu);
	world->freed += 1ull << order;
	world->clock++;
	for (uint64_t at = number << 12; at < (number + (1ull << order)) << 12; at += 1 << 12) {
		struct frame *frame = world_frame(world, at);

		if (!frame)
			break;
		frame->freed_at = world->clock;
		note(cpu, &frame->freed, &event);
		if (frame->table)
			judge_table(cpu, frame);
		judge_frame(cpu, at);
	}
	pthread_mutex_unlock(&world->lock);
}

/* --- what waits for user mode, or for a PCID --- */

void cpu_leave_user(struct cpu *cpu)
{
	pthread_mutex_lock(&cpu->world->lock);
	cpu->is_user = false;
	cpu->user_root = cpu->root;
	cpu->user_pcid = cpu->pcid;
	pthread_mutex_unlock(&cpu->world->lock);
}

void cpu_enter_user(struct cpu *cpu)
{
	struct translation *it, *next;

	pthread_mutex_lock(&cpu->world->lock);
	cpu->is_user = true;
	if (cpu->task)
		cpu->task->returns++;
	it = cpu->suspects;
	cpu->suspects = NULL;
	for (; it; it = next) {
		next = it->next_suspect;
		it->is_suspect = false;
		judge_reach(cpu, it, it->suspected);
	}
	pthread_mutex_unlock(&cpu->world->lock);
}

static void judge_loaded(struct cpu *cpu)
{
	struct step *it = cpu->suspect_steps, *next;

	cpu->suspect_steps = NULL;
	for (; it; it = next) {
		next = it->next_suspect;
		it->is_suspect = false;
		judge_step(cpu, it);
	}
}

void cpu_load_root(struct cpu *cpu, uint64_t cr3)
{
	bool keeps = cpu->keeps || cr3 >> 63;

	/* Other CPUs must not see the new PCID with its old translations. */
	pthread_mutex_lock(&cpu->world->lock);
	cpu->root = cr3 & 0x000ffffffffff000ull;
	cpu->pcid = cr3 & 0xfff;
	cpu->keeps = false;
	if (keeps)
		__atomic_fetch_add(&cpu->stamp, 1, __ATOMIC_RELAXED);
	else
		cpu_forget_space(cpu, cpu->pcid);
	judge_loaded(cpu);
	pthread_mutex_unlock(&cpu->world->lock);
}
