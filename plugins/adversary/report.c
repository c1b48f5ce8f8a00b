// SPDX-License-Identifier: GPL-2.0-only
/* Findings, one for each cause, and how they are written. See world.h. */
#include "world.h"

#include <inttypes.h>
#include <string.h>

static const char *const names[FINDINGS] = {
	[STALE_WRITE] = "stale write",
	[STALE_READ] = "stale read",
	[STALE_FETCH] = "stale fetch",
	[OWNER_READ] = "read of another owner's page",
	[OWNER_WRITE] = "write to another owner's page",
	[FREED_WRITE] = "write to a freed page",
	[RIGHTS_WRITE] = "write without the right",
	[RIGHTS_FETCH] = "fetch without the right",
	[FREED_TABLE] = "walk through a freed table",
};

static const char *const kinds[KINDS] = { "load", "store", "fetch" };

/* What findings have in common that count as one: their kind, and the code that unmapped. */
static uint64_t key_of(enum finding finding, const struct event *event)
{
	uint64_t key = finding + 1;

	for (unsigned int i = 0; event && i < event->count && i < 4; i++)
		key = (key ^ event->calls[i]) * 0x100000001b3ull;
	return key;
}

/* Returns a new cause to fill, or NULL if this one is known, or there are too many. */
static struct cause *new_cause(struct world *world, enum finding finding, bool is_pending,
			       const struct event *event)
{
	uint64_t key = key_of(finding, event) * 2 + is_pending;

	for (unsigned int i = 0; i < world->causes; i++) {
		if (world->cause[i].key != key)
			continue;
		world->cause[i].count++;
		return NULL;
	}
	if (world->causes == CAUSES) {
		world->lost++;
		return NULL;
	}
	if (!world->causes)
		clock_gettime(CLOCK_MONOTONIC, &world->found);
	world->cause[world->causes] = (struct cause){
		.finding = finding,
		.key = key,
		.count = 1,
	};
	return &world->cause[world->causes++];
}

static void add_frame(struct cause *cause, const struct frame *frame)
{
	if (!frame)
		return;
	cause->has_taken = frame->taken;
	if (frame->taken)
		cause->taken = *frame->taken;
	cause->has_freed = frame->freed;
	if (frame->freed)
		cause->freed = *frame->freed;
}

void world_report(struct cpu *cpu, enum finding finding, const struct translation *old,
		  uint64_t address, enum kind kind, const struct leaf *now)
{
	struct world *world = cpu->world;
	const struct change *change = world_change(world, old);
	uint64_t frame = old->frame + (address - old->page);
	bool is_pending = change && change->task && !world_is_closed(change);
	struct cause *cause = new_cause(world, finding, is_pending, change ? &change->event : NULL);

	if (!cause)
		return;
	cause->address = address;
	cause->kind = kind;
	cause->is_speculative = !now;
	cause->is_pending = is_pending;
	cause->cpu = old->cpu->index;
	cause->space = old->space;
	cause->now = cpu_event(cpu);
	cause->made = old->made;
	cause->frame = frame & ~0xfffull;
	cause->now_frame = now && now->is_present ? now->frame : 0;
	cause->has_change = change;
	if (change)
		cause->change = *change;
	add_frame(cause, world_frame(world, frame));
}

void world_report_table(struct cpu *cpu, const struct step *step)
{
	struct world *world = cpu->world;
	struct event now = cpu_event(cpu);
	struct cause *cause = new_cause(world, FREED_TABLE, false, &now);

	if (!cause)
		return;
	cause->address = step->region;
	cause->is_speculative = true;
	cause->cpu = step->cpu->index;
	cause->space = step->space;
	cause->now = now;
	cause->frame = step->table;
	add_frame(cause, world_frame(world, step->table));
}

/* A task's name may contain any bytes. */
static void write_name(FILE *file, const char *name)
{
	for (int i = 0; i < NAME_LENGTH && name[i]; i++)
		fputc(name[i] < ' ' || name[i] > '~' || strchr("\"\\", name[i]) ? '?' : name[i],
		      file);
}

static void write_event(FILE *file, const char *name, const struct event *event)
{
	const char *separator = "";

	fprintf(file,
		",\n   \"%s\": {\"cpu\": %u, \"instruction\": %" PRIu64 ", \"tgid\": %u, \"pid\": %u, "
		"\"task\": \"",
		name, event->cpu, event->time, (unsigned int)(event->task >> 32),
		(unsigned int)event->task);
	write_name(file, event->name);
	fputs("\", \"calls\": [", file);
	for (unsigned int i = 0; i < event->count; i++) {
		fprintf(file, "%s\"%#" PRIx64 "\"", separator, event->calls[i]);
		separator = ", ";
	}
	fputs("]}", file);
}

static void write_cause(FILE *file, const struct cause *it)
{
	fprintf(file,
		"  {\"finding\": \"%s\", \"count\": %" PRIu64 ", \"access\": \"%s\", "
		"\"possible_only\": %s, \"pending\": %s, \"address\": \"%#" PRIx64 "\", \"cpu\": %u, \"pcid\": %u, "
		"\"frame\": \"%#" PRIx64 "\", \"frame_now\": \"%#" PRIx64 "\"",
		names[it->finding], it->count, kinds[it->kind], it->is_speculative ? "true" : "false",
		it->is_pending ? "true" : "false",
		it->address, it->cpu, it->space, it->frame, it->now_frame);
	if (it->has_change)
		fprintf(file, ", \"entry_before\": \"%#" PRIx64 "\", \"entry_after\": \"%#" PRIx64 "\"",
			it->change.old, it->change.new);
	write_event(file, "seen", &it->now);
	if (it->finding != FREED_TABLE)
		write_event(file, "cached", &it->made);
	if (it->has_change)
		write_event(file, "unmapped", &it->change.event);
	if (it->has_freed)
		write_event(file, "freed", &it->freed);
	if (it->has_taken)
		write_event(file, "taken", &it->taken);
	fputs("}", file);
}

static double seconds_between(const struct timespec *from, const struct timespec *to)
{
	return to->tv_sec - from->tv_sec + (to->tv_nsec - from->tv_nsec) / 1e9;
}

/* Writes all counts and findings. */
bool world_write(const struct world *world, FILE *file)
{
	uint64_t checked = 0, stale = 0, legal = 0;

	for (unsigned int i = 0; i < world->cpus; i++) {
		checked += world->cpu[i] ? world->cpu[i]->checked : 0;
		stale += world->cpu[i] ? world->cpu[i]->stale : 0;
		legal += world->cpu[i] ? world->cpu[i]->legal : 0;
	}
	fputs("{\"found_after\": ", file);
	if (world->causes)
		fprintf(file, "%.3f", seconds_between(&world->began, &world->found));
	else
		fputs("null", file);
	fprintf(file,
		", \"checked\": %" PRIu64 ", \"stale_capable\": %" PRIu64 ", \"legal\": %" PRIu64
		", \"unmaps\": %" PRIu64 ", \"flushes\": %" PRIu64 ", \"frames_taken\": %" PRIu64
		", \"frames_freed\": %" PRIu64 ", \"planted\": %" PRIu64 ", \"lost\": %" PRIu64
		",\n \"reports\": [",
		checked, stale, legal, world->unmaps, world->flushes, world->taken, world->freed,
		world->planted, world->lost);
	for (unsigned int i = 0; i < world->causes; i++) {
		fputs(i ? ",\n" : "\n", file);
		write_cause(file, &world->cause[i]);
	}
	fputs("]}\n", file);
	return !ferror(file);
}
