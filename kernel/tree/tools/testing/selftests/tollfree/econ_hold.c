// SPDX-License-Identifier: GPL-2.0-only
/* A process that holds memory so that much memory is free, but no block. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "econ.h"

/* A process that holds memory so that much memory is free, but no block. */
static struct {
	pid_t pid;
	int ask;
	int answer;
	/* One page of each is in use. */
	size_t piece;
} holder;

/* Memory in which one page of each piece is in use. */
static struct {
	char *memory;
	size_t size;
} broken_up;

static bool prefer_node(int node)
{
	unsigned long nodes = 1UL << node;

	return !syscall(SYS_set_mempolicy, MPOL_PREFERRED, &nodes, 8 * sizeof(nodes));
}

/*
 * Fill memory with 4 KiB pages, and free all but the first one of each piece. The node of this
 * CPU is filled first; to its lowest zone, if there is another node.
 */
bool break_up(size_t piece)
{
	struct sysinfo about;
	size_t size, leave, at;
	char *memory;

	if (sysinfo(&about))
		return false;
	size = about.totalram * about.mem_unit & ~(REGION - 1);
	leave = size / 16 + 32 * MIB;
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED || madvise(memory, size, MADV_NOHUGEPAGE))
		return false;
	for (at = 0; at < size; at += MIB) {
		if (sysinfo(&about) || about.freeram * about.mem_unit < leave)
			break;
		touch(memory + at, MIB);
	}
	for (size = at, at = 0; at < size; at += piece)
		if (madvise(memory + at + PAGE, piece - PAGE, MADV_DONTNEED))
			return false;
	broken_up.memory = memory;
	broken_up.size = size;
	return true;
}

/* Return: node of a page; MOST_NODES if it is not known. */
static unsigned int node_of(void *page)
{
	unsigned int node;

	if (syscall(SYS_get_mempolicy, &node, NULL, 0, page, MPOL_F_NODE | MPOL_F_ADDR))
		return MOST_NODES;
	return node < MOST_NODES ? node : MOST_NODES;
}

/* Pin a page of each region of the last third of each node, which was freed last. */
static bool pin(void)
{
	size_t regions = (broken_up.size + REGION - 1) / REGION, left[MOST_NODES + 1] = {};
	int pipes[2];

	for (size_t at = 0; at < regions; at++)
		left[node_of(broken_up.memory + at * REGION)]++;
	for (size_t node = 0; node < ARRAY_SIZE(left); node++)
		left[node] /= 3;
	if (pipe2(pipes, O_CLOEXEC) || fcntl(pipes[1], F_SETPIPE_SZ, regions * PAGE) < 0)
		return false;
	for (size_t at = regions; at-- > 0;) {
		char *memory = broken_up.memory + at * REGION;
		struct iovec page = { .iov_base = memory, .iov_len = PAGE };
		unsigned int node = node_of(memory);

		if (!left[node])
			continue;
		left[node]--;
		if (vmsplice(pipes[1], &page, 1, SPLICE_F_NONBLOCK) != (ssize_t)PAGE)
			return false;
	}
	return true;
}

/* Mlock the pages that are in use. */
static bool lock(void)
{
	return !mlock2(broken_up.memory, broken_up.size, MLOCK_ONFAULT);
}

/* Memory; each region of it is touched once. */
static struct {
	char *memory;
	size_t used;
} soaked;

#define MOST_SOAKED	(1024 * MIB)

bool begin_to_soak(void)
{
	char *at = mmap(NULL, MOST_SOAKED + REGION, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	soaked.memory = region_from(at);
	return at != MAP_FAILED;
}

/* A block that this CPU gets without waiting, if there is one. */
bool soak_up_block(void)
{
	char *at = soaked.memory + soaked.used;
	long before = huge_in(soaked.memory);

	if (soaked.used >= MOST_SOAKED)
		return false;
	touch(at, PAGE);
	if (huge_in(soaked.memory) > before) {
		soaked.used += REGION;
		return true;
	}
	/* With its page table, so that the next touch is another decision. */
	mmap(at, REGION, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	return false;
}

/* The blocks of all nodes. */
static bool soak_up(void)
{
	for (int cpu = 0; cpu < get_nprocs(); cpu++) {
		stay_on(cpu);
		while (soak_up_block())
			;
	}
	return soaked.used < MOST_SOAKED;
}

/* What the holder is asked for. */
enum { MORE, PIN, LOCK };

static void hold(int ask, int answer)
{
	char c = MORE;

	/* Drop an inherited profile. */
	write_text(LEDGER, "off");
	stay_on(0);
	if (!break_up(holder.piece) || !begin_to_soak())
		_exit(1);
	do {
		if ((c == PIN && !pin()) || (c == LOCK && !lock()) || !soak_up() ||
		    write(answer, &c, 1) != 1)
			_exit(1);
	} while (read(ask, &c, 1) == 1);
	_exit(0);
}

/* Take all blocks of a node, and more on request: other tasks free some. */
static void take_node(int node, int ask, int answer)
{
	int cpus = get_nprocs();
	char c = 0;

	write_text(LEDGER, "off");
	if (!prefer_node(node) || !begin_to_soak())
		_exit(1);
	do {
		/* Per-CPU lists keep some freed blocks. */
		for (int i = 0; i < 2 * cpus; i++) {
			stay_on(i % cpus);
			for (int misses = 0; misses < 2;)
				misses = soak_up_block() ? 0 : misses + 1;
		}
		if (write(answer, &c, 1) != 1)
			_exit(1);
	} while (read(ask, &c, 1) == 1);
	_exit(0);
}

static bool is_answered(void)
{
	char c;

	return read(holder.answer, &c, 1) == 1;
}

/* There are no other requests to kcompactd. */
static struct kept quiet[] = {
	{ .path = "/proc/sys/vm/compaction_proactiveness" },
	{ .path = "/proc/sys/vm/watermark_boost_factor" },
};

/* Take all blocks, of all nodes or of one. */
bool hold_node(int node)
{
	int to[2], from[2];

	keep(quiet, ARRAY_SIZE(quiet));
	for (size_t i = 0; i < ARRAY_SIZE(quiet); i++)
		CHECK(write_text(quiet[i].path, "0"));
	signal(SIGPIPE, SIG_IGN);
	if (pipe2(to, O_CLOEXEC) || pipe2(from, O_CLOEXEC))
		return false;
	holder.pid = fork();
	if (!holder.pid) {
		close(to[1]);
		close(from[0]);
		if (node >= 0)
			take_node(node, to[0], from[1]);
		hold(to[0], from[1]);
	}
	close(to[0]);
	close(from[1]);
	holder.ask = to[1];
	holder.answer = from[0];
	return holder.pid > 0 && is_answered();
}

bool hold_memory_in(size_t piece)
{
	holder.piece = piece;
	return hold_node(-1);
}

bool hold_memory(void)
{
	return hold_memory_in(16 * PAGE);
}

static bool ask_for(char what)
{
	bool done = write(holder.ask, &what, 1) == 1 && is_answered();

	return CHECK(done);
}

/* Other tasks may have freed some meanwhile. */
bool hold_more(void)
{
	return ask_for(MORE);
}

/* A third of the blocks cannot be made then. */
bool hold_pinned(void)
{
	return ask_for(PIN);
}

bool hold_locked(void)
{
	return ask_for(LOCK);
}

/* A program loses the benefit of a block, unless one was freed meanwhile. */
void lose(void)
{
	if (hold_more())
		run(FIRST "0 0x800000 " RICH, "touch_8");
}

bool let_go(void)
{
	int status;

	close(holder.ask);
	close(holder.answer);
	signal(SIGPIPE, SIG_DFL);
	put_back(quiet, ARRAY_SIZE(quiet));
	return waitpid(holder.pid, &status, 0) == holder.pid && !status;
}
