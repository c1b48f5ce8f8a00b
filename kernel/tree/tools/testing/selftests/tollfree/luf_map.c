// SPDX-License-Identifier: GPL-2.0-only
/* Tests of operations that change a mapping, or write to it by force. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "luf.h"

#define UPROBES		"/sys/bus/event_source/devices/uprobe/"

/* First word of code that returns a value; the same with a breakpoint. */
#define CODE_OF(value)	((int)((unsigned int)(value) << 8 | 0xb8))
#define PROBED		((int)((unsigned int)OLD << 8 | 0xcc))

static int *private_file(void)
{
	return map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static int *read_only_private_file(void)
{
	return map(PROT_READ, MAP_PRIVATE);
}

/* A function that returns the value. */
static void write_code(void *to, int value)
{
	unsigned char *code = to;

	code[0] = 0xb8;	/* mov $value, %eax */
	memcpy(code + 1, &value, sizeof(value));
	code[5] = 0xc3;	/* ret */
}

static int *text(void)
{
	unsigned char code[PAGE] = "";

	write_code(code, OLD);
	make_file(names[0], code, PAGE);
	file = open(names[0], O_RDONLY | O_CLOEXEC);
	return reclaimable(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0));
}

static int *text_to_probe(void)
{
	if (access(UPROBES, F_OK))
		return cannot("a kernel without CONFIG_UPROBE_EVENTS");
	return text();
}

void act_map_fixed(int *at)
{
	must(mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at,
	     "mmap");
}

static void act_map_other_file(int *at)
{
	int other = open(names[1], O_RDONLY);

	must(mmap(at, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, other, 0) == at, "mmap");
	close(other);
}

void act_unmap(int *at)
{
	must(!munmap(at, PAGE), "munmap");
}

static void act_unmap_and_map(int *at)
{
	act_unmap(at);
	act_map_other_file(at);
}

void act_mremap_away(int *at)
{
	must(mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, away_from(at)) != MAP_FAILED,
	     "mremap");
}

static void act_mremap_here(int *at)
{
	int other = open(names[1], O_RDONLY);
	void *there = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, other, 0);

	must(mremap(there, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at, "mremap");
	close(other);
}

void act_protect(int *at)
{
	must(!mprotect(at, PAGE, PROT_NONE), "mprotect");
}

static void act_store(int *at)
{
	new_page(at);
}

static void act_protect_and_store(int *at)
{
	must(!mprotect(at, PAGE, PROT_READ | PROT_WRITE), "mprotect");
	new_page(at);
}

void act_poke(int *at)
{
	int memory = open("/proc/self/mem", O_RDWR);

	must(pwrite(memory, aligned_page(), PAGE, (off_t)(uintptr_t)at) == PAGE,
	     "/proc/self/mem");
	close(memory);
}

/* Without a process ID the breakpoint is set in all processes that map the file. */
static void act_probe(int *at)
{
	struct perf_event_attr attr = {
		.type = number(UPROBES "type"),
		.size = sizeof(attr),
		.uprobe_path = (uintptr_t)names[0],
	};

	kept = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	must(kept >= 0, "uprobe");
}

void act_fork_and_store(int *at)
{
	pid_t child = fork();

	if (!child) {
		pause();
		_exit(0);
	}
	new_page(at);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* A debugger writes by force while its target is stopped. */
static bool poke_parent(void *at)
{
	pid_t parent = getppid();
	long code = 0;

	write_code(&code, NEW);
	return !ptrace(PTRACE_SEIZE, parent, 0, 0) && !ptrace(PTRACE_INTERRUPT, parent, 0, 0) &&
	       waitpid(parent, NULL, __WALL) == parent &&
	       !ptrace(PTRACE_POKETEXT, parent, at, code) &&
	       !ptrace(PTRACE_DETACH, parent, 0, 0);
}

static int to_tracer[2];

/* The tracer starts before the page is unmapped: fork flushes. */
static int *traced_text(void)
{
	int *at = text();
	char word;

	must(!pipe2(to_tracer, O_CLOEXEC), "pipe");
	sharer = fork();
	if (!sharer)
		_exit(read(to_tracer[0], &word, 1) != 1 || !poke_parent(at));
	return at;
}

static int *traced_text_that_runs(void)
{
	if (code_is_fixed())
		return cannot(FIXED);
	reader.runs = true;
	return traced_text();
}

static void act_trace(int *at)
{
	must(write(to_tracer[1], "", 1) == 1 && !ended(sharer), "ptrace");
	sharer = 0;
	close(to_tracer[0]);
	close(to_tracer[1]);
}

const struct litmus luf_map_litmuses[] = {
	{ "map anonymous memory over it", shared_file, act_map_fixed, 0 },
	{ "map another file over it", shared_file, act_map_other_file, OTHER },
	{ "munmap", shared_file, act_unmap, FAULTED },
	{ "munmap and map another file", shared_file, act_unmap_and_map, OTHER },
	{ "mremap away", shared_file, act_mremap_away, FAULTED },
	{ "mremap another file to it", shared_file, act_mremap_here, OTHER },
	{ "mprotect", shared_file, act_protect, FAULTED },
	{ "mprotect and store", read_only_private_file, act_protect_and_store, NEW },
	{ "store to a private mapping", private_file, act_store, NEW },
	{ "fork and store", private_file, act_fork_and_store, NEW },
	{ "poke into read-only memory", read_only_private_file, act_poke, NEW },
	{ "poke by ptrace into text", traced_text, act_trace, CODE_OF(NEW) },
	{ "poke by ptrace into text that runs", traced_text_that_runs, act_trace, NEW },
	{ "place a uprobe", text_to_probe, act_probe, PROBED },
	{}
};
