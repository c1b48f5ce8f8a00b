// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases that take rights away, or copy on write. */
#ifndef STALE_PROTECT_H
#define STALE_PROTECT_H

#include "settings.h"
#include "stale_memory.h"

static void protect_round(unsigned int how, int before, int after)
{
	char *region = filled();

	protect(region, LENGTH, before);
	touch(region, LENGTH, how | ON);
	protect(region, LENGTH, after);
	finish(region, LENGTH);
}

static void protect_ro_round(void)
{
	protect_round(READ | WRITE, PROT_READ | PROT_WRITE, PROT_READ);
}

static void protect_none_round(void)
{
	protect_round(turn & 1 ? READ : WRITE, PROT_READ | PROT_WRITE, PROT_NONE);
}

static void protect_noexec_round(void)
{
	protect_round(CALL, PROT_READ | PROT_WRITE | PROT_EXEC, PROT_READ | PROT_WRITE);
}

/* A child that lives until it is let go. */
static pid_t waiting_child(struct gate *gate)
{
	pid_t child;

	*gate = gate_new();
	child = new_child();
	if (child == 0) {
		gate_wait(gate);
		_exit(0);
	}
	gate_gather(gate, 1);
	return child;
}

static void let_go(struct gate *gate)
{
	gate_open(gate, 1);
	wait_for_children(1);
	for (int i = 0; i < 2; i++) {
		close(gate->here[i]);
		close(gate->go[i]);
	}
}

/* The parent writes while a child has the same pages; then the child's pages get a new owner. */
static void copy_after_fork(char *region, size_t length)
{
	struct gate gate;

	touch(region, length, READ | WRITE);
	waiting_child(&gate);
	touch(region, length, READ | sometimes_on());
	fill(region, length);
	settle();
	let_go(&gate);
	renew_and_finish(region, length);
}

static void cow_fork_round(void)
{
	copy_after_fork(filled(), LENGTH);
}

/* The toucher's pages become read-only while it writes them. */
static void fork_round(void)
{
	char *region = filled();
	struct gate gate;

	touch(region, LENGTH, WRITE | ON);
	waiting_child(&gate);
	settle();
	let_go(&gate);
	renew_and_finish(region, LENGTH);
}

/* A page of zeroes is shared by all that only read. */
static void cow_zero_round(void)
{
	char *region = map_at(AREA, LENGTH);

	read_all(region, LENGTH);
	touch(region, LENGTH, READ | ON);
	fill(region, LENGTH);
	finish(region, LENGTH);
}

/* The file's own frames get a new owner; the private copies stay. */
static void cow_file_round(void)
{
	int fd = memory_file(0);
	char *region;

	resize(fd, LENGTH);
	unmap(fill(map_file(AREA, LENGTH, fd), LENGTH), LENGTH);
	region = map_as(AREA, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd);
	read_all(region, LENGTH);
	touch(region, LENGTH, READ | sometimes_on());
	fill(region, LENGTH);
	punch(fd, LENGTH);
	renew_and_finish(region, LENGTH);
	close(fd);
}

/* A new page is soft-dirty, in a kernel that has such a bit. */
static void softdirty_prepare(void)
{
	char *region = filled();
	uint64_t word = pagemap_word(region);

	unmap(region, LENGTH);
	if (!(word >> SOFT_DIRTY & 1))
		not_possible("the kernel has no soft-dirty bits");
}

static void softdirty_round(void)
{
	char *region = filled();

	touch(region, LENGTH, WRITE | ON);
	if (!set("/proc/self/clear_refs", "4"))
		fail("/proc/self/clear_refs");
	finish(region, LENGTH);
}

static void cold_round(void)
{
	char *region = filled();

	touch(region, LENGTH, READ | ON);
	advise(region, LENGTH, MADV_COLD);
	finish(region, LENGTH);
}

#endif
