// SPDX-License-Identifier: GPL-2.0-only
/* Runs the tests of coherence, and those of the end of an address space. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "luf.h"

/* Cleanup after each test. */
void clean_up(int *at)
{
	end_writers();
	stop_reader();
	end_sharer();
	end_twin();
	if (kept >= 0)
		close(kept);
	kept = -1;
	if (file >= 0)
		close(file);
	file = -1;
	if (elsewhere)
		munmap(elsewhere, PAGE);
	elsewhere = NULL;
	at = (int *)((uintptr_t)at & -PAGE);
	munmap(at, PAGE);
	munmap(away_from(at), PAGE);
	end_overlay();
}

static void try_litmus(const struct litmus *test)
{
	int *at = test->set_up();
	int value;

	if (at) {
		start_reader(at);
		if (make_stale(at)) {
			test->act(at);
			value = read_now();
			if (value == reader.old)
				ksft_print_msg("%s: STALE\n", test->name);
			else if (value != test->expected)
				ksft_print_msg("%s: read 0x%x\n", test->name, value);
			failed |= value != test->expected || value == reader.old;
		} else {
			not_stale(test->name);
		}
		clean_up(at);
	}
	end_test(test->name);
}

void try_litmuses(const struct litmus *test)
{
	for (; test->name; test++)
		try_litmus(test);
}

/*
 * The whole address space is replaced: another file is mapped at the address then, on the
 * same CPU.
 */

static void *const place = (void *)0x200000000000;

static void become_another(void)
{
	execl("/proc/self/exe", "luf", "look", NULL);
	_exit(KSFT_FAIL);
}

/* The other program. */
int look_again(void)
{
	int other = open(names[1], O_RDONLY);
	int *at = mmap(place, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, other, 0);

	stay_on(1);
	return at == place && *at == OTHER ? KSFT_PASS : KSFT_FAIL;
}

static void leave(void)
{
	_exit(KSFT_PASS);
}

void lock_memory(void)
{
	/* Reclaim only the page of the test. */
	must(!mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT), "mlockall");
}

/* A child holds the stale translation. */
static void hold(void (*go)(void))
{
	lock_memory();
	close_pagemap();
	file = open(names[0], O_RDONLY | O_CLOEXEC);
	start_reader(reclaimable(mmap(place, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE,
				      file, 0)));
	if (!make_stale(place))
		_exit(KSFT_SKIP);
	go();
}

pid_t start(void (*actor)(void (*)(void)), void (*go)(void))
{
	pid_t child = fork();

	if (!child) {
		actor(go);
		_exit(KSFT_FAIL);
	}
	return child;
}

void go_at_once(void (*go)(void))
{
	go();
}

static void try_going(const char *name, void (*go)(void))
{
	int status;

	fill(names[0], OLD, PAGE);
	fill(names[1], OTHER, PAGE);
	status = ended(start(hold, go));
	if (status == KSFT_SKIP) {
		not_stale(name);
	} else {
		if (!status && go == leave)
			status = ended(start(go_at_once, become_another));
		failed |= status != 0;
	}
	end_test(name);
}

void try_exit_and_exec(void)
{
	try_going("exit", leave);
	try_going("exec", become_another);
}
