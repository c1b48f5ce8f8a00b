// SPDX-License-Identifier: GPL-2.0-only
/* Tests of several nodes. */
#define _GNU_SOURCE
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "econ.h"

static int touch_each_by(int policy, int away)
{
	unsigned int cpu, node;
	unsigned long nodes;

	if (syscall(SYS_getcpu, &cpu, &node, NULL))
		return 203;
	nodes = policy == MPOL_INTERLEAVE ? 3 : 1UL << (node ^ away);
	if (syscall(SYS_set_mempolicy, policy, &nodes, 8 * sizeof(nodes)))
		return 204;
	return touch_each_of_8();
}

static int touch_each_here(void)
{
	return touch_each_by(MPOL_BIND, 0);
}

static int touch_each_away(void)
{
	return touch_each_by(MPOL_BIND, 1);
}

static int touch_each_in_turn(void)
{
	return touch_each_by(MPOL_INTERLEAVE, 0);
}

static int touch_here(void)
{
	unsigned long nodes = 1;

	return syscall(SYS_set_mempolicy, MPOL_BIND, &nodes, 8 * sizeof(nodes)) ? 203 : touch_8();
}

/* A policy of the mapping, not of the task. */
char *map_on(size_t size, int node)
{
	unsigned long nodes = 1UL << node;
	char *memory = map(size);

	if (memory && syscall(SYS_mbind, memory, size, MPOL_BIND, &nodes, 8 * sizeof(nodes), 0))
		return NULL;
	return memory;
}

static int touch_on_second_node(void)
{
	char *memory = map_on(8 * MIB, 1);

	if (!memory)
		return 203;
	touch(memory, 8 * MIB);
	return huge_in(memory);
}

/* 4 KiB pages for khugepaged to collapse. */
static int wait_on_second_node(void)
{
	char *memory = map_on(8 * MIB, 1);

	if (!memory)
		return 203;
	write_text(SYSFS "costs/clear_huge", "9000000000000");
	touch(memory, 8 * MIB);
	write_text(SYSFS "costs/clear_huge", "200000");
	for (int i = 0; i < 2000 && huge_in(memory) < 8; i++)
		usleep(10000);
	return huge_in(memory);
}

static void policies_are_obeyed(void)
{
	long taken;

	if (memory_nodes() < 2) {
		lacks = "one node";
		return;
	}
	limit_to("8");
	CHECK(takes_all(FIRST "0 0x800000 " FAIR, "touch_each_here"));
	CHECK(stock_up(4));
	taken = zeroed("taken");
	/* Only half of the local ones. */
	CHECK(run(FIRST "0 0x800000 " RICH, "touch_each_in_turn") == 8);
	CHECK(zeroed("taken") <= taken + 4);
	/*
	 * Blocks wanted on a node are zeroed on that node: none while nothing is kept. (The
	 * limit stays until then, or the thread may be faster than the program.)
	 */
	limit_to("0");
	CHECK(run(FIRST "0 0x800000 " FAIR, "touch_each_away") == 0);
	limit_to("8");
	CHECK(takes_all(FIRST "0 0x800000 " FAIR, "touch_each_away"));
	all_are_accounted_for();
}

/* A field of the ledger of one node. */
static long ledger_of(int node, const char *number)
{
	char text[4096], name[32], *at;

	read_from(SYSFS "stats/ledger", text, sizeof(text));
	snprintf(name, sizeof(name), "node %d ", node);
	at = strstr(text, name);
	at = at ? strstr(at, number) : NULL;
	return at ? atol(at + strlen(number)) : -1;
}

/* Whether a program gets fewer blocks than it could use; other tasks may free some. */
static bool loses_blocks(const char *part)
{
	for (int i = 0; i < 20 && hold_more(); i++)
		if (run(FIRST "0 0x800000 " RICH, part) < 8)
			return true;
	return false;
}

/* The node that memory will come from decides, wherever the program runs. */
static void bound_memory_is_judged_on_its_node(void)
{
	struct kept kept[] = {
		{ .path = SYSFS "costs/compact_block" },
		{ .path = THP "khugepaged/scan_sleep_millisecs" },
		{ .path = THP "khugepaged/pages_to_scan" },
		{ .path = SYSFS "costs/move_page" },
	};
	pid_t khugepaged = thread_of("khugepaged");
	cpu_set_t all, first;
	long here, there;

	if (memory_nodes() < 2) {
		lacks = "one node";
		return;
	}
	keep(kept, ARRAY_SIZE(kept));
	CHECK(let_blocks_cost("9000000000000", "9000000000000"));
	CHECK(write_text(kept[1].path, "10"));
	CHECK(write_text(kept[2].path, "100000"));
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	CHECK(khugepaged && !sched_getaffinity(khugepaged, sizeof(all), &all) &&
	      !sched_setaffinity(khugepaged, sizeof(first), &first));

	/* The first node has no block, the second one has. */
	if (CHECK(hold_node(0))) {
		CHECK(run(FIRST "0 0x800000 " RICH, "touch_on_second_node") == 8);
		hold_more();
		CHECK(run(FIRST "0 0x800000 " RICH, "wait_on_second_node") == 8);
		CHECK(loses_blocks("touch_here"));
	}
	CHECK(let_go());
	/* The reverse: losses count on that node. */
	if (CHECK(hold_node(1))) {
		here = ledger_of(0, "faults ");
		there = ledger_of(1, "faults ");
		CHECK(loses_blocks("touch_on_second_node"));
		CHECK(ledger_of(0, "faults ") == here);
		CHECK(ledger_of(1, "faults ") > there);
		CHECK(run(FIRST "0 0x800000 " RICH, "touch_here") == 8);
	}
	CHECK(let_go());
	CHECK(!sched_setaffinity(khugepaged, sizeof(all), &all));
	put_back(kept, ARRAY_SIZE(kept));
}

const struct test econ_nodes_tests[] = {
	TEST(policies_are_obeyed),
	TEST(bound_memory_is_judged_on_its_node),
	{}
};

const struct part econ_nodes_parts[] = {
	PART(touch_each_here),
	PART(touch_each_away),
	PART(touch_each_in_turn),
	PART(touch_here),
	PART(touch_on_second_node),
	PART(wait_on_second_node),
	{}
};
