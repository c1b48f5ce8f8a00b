/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the files of the program econ. */
#ifndef TOLLFREE_ECON_H
#define TOLLFREE_ECON_H

#include <stdint.h>
#include <time.h>

#include "harness.h"
#include "test.h"

#define MIB		0x100000UL
#define REGION		(2 * MIB)
#define SYSFS		"/sys/kernel/mm/econ/"
#define THP		"/sys/kernel/mm/transparent_hugepage/"
#define PROFILE		"/proc/self/mm_profile"
#define LEDGER		"/proc/self/mm_ledger"
/* The first readable and writable mapping of 8 MiB. */
#define FIRST		"mmap 0 23 3 "
#define RICH		"50000000 512 100\n"
/* Smallest and largest loss of a fault without a block in such a region. */
#define LEAST_NS	45000000L
#define MOST_NS		52000000L
/* Worth any attempt, on a slow host that emulates a kernel with all checks as well. */
#define RICHEST		"900000000 512 100\n"
#define POOR		"0 8 100\n"
/* All pages are touched, and page walks cost nothing. */
#define FILLED		"0 512 100\n"
/* Less than clearing costs, and more than the rest of a fault. */
#define FAIR		"50000 0 100\n"
/*
 * Timeout for work of other threads, in seconds. Only a failure takes all of it: a slow host
 * that emulates a kernel with all checks takes over a minute for a thousand faults.
 */
#define PATIENCE	300
#define MOST_NODES	8

/* From the linker: this program's zero-initialised variables. */
extern char __bss_start[], _end[];

/* A program that a test executes with a profile; it exits with the result. */
struct part {
	const char *name;
	int (*run)(void);
};

/* An entry of a list of parts, which ends with an empty one. */
#define PART(name) { #name, name }

/* The first region that begins at an address or after it. */
static inline char *region_from(char *at)
{
	return (char *)(((uintptr_t)at + REGION - 1) & ~(REGION - 1));
}

/* Saved content of a file, to be restored. */
struct kept {
	const char *path;
	char text[32];
};

extern const struct test econ_rows_tests[], econ_rights_tests[], econ_control_tests[],
	econ_costs_tests[], econ_promote_tests[], econ_demote_tests[], econ_compact_tests[],
	econ_zero_tests[], econ_zero_use_tests[], econ_scarce_tests[],
	econ_explore_tests[], econ_stalls_tests[], econ_short_tests[], econ_use_tests[],
	econ_nodes_tests[], econ_block_tests[], econ_weight_tests[];
extern const struct part econ_rows_parts[], econ_rights_parts[], econ_control_parts[],
	econ_promote_parts[], econ_demote_parts[], econ_compact_parts[], econ_zero_parts[],
	econ_zero_use_parts[], econ_scarce_parts[],
	econ_explore_parts[], econ_stalls_parts[], econ_short_parts[], econ_use_parts[],
	econ_nodes_parts[], econ_weight_parts[];

/* econ_common.c: profiles, files, memory, and execution of this program. */
extern char self[];
extern unsigned long profiled_run_ns;

void profile_of(const char *rows, char *text);
bool give(const char *rows);
int write_to(const char *path, const char *text, size_t length);
void read_from(const char *path, char *text, size_t length);
void keep(struct kept *files, size_t nr);
void put_back(struct kept *files, size_t nr);
long stat_of(const char *model, const char *number);
long vmstat_of(const char *name);
long smaps_mib(const void *memory, const char *format);
long memory_of(const char *name);
long huge_in(const void *memory);
char *map(size_t size);
void touch(char *memory, size_t size);
int run_path(const char *path, const char *rows, const char *part, uid_t uid);
int run(const char *rows, const char *part);
double children_ran(void);
pid_t thread_of(const char *name);
int memory_nodes(void);
void print_file(const char *path);
void forget_ledgers(void);
void mount_groups(const char *directory);
void unmount_groups(const char *directory);
#define NR_COSTS_OF_BLOCKS	2
extern struct kept costs_of_blocks[NR_COSTS_OF_BLOCKS];
bool let_blocks_cost(const char *compact_block, const char *move_page);
time_t now(void);

/* econ_rows.c */
#define SHORT_RUN_NS	1000000000UL
void outlive_short_run(void);
int touch_8(void);

/* econ_costs.c */
void keep_costs(void);
void put_back_costs(void);
long faults_of(const char *kind);
void freeze_all_but(const char *cost);
bool is_measured(const char *cost);
void check_that_it_is_measured(const char *cost);

/* econ_hold.c: another process takes all free blocks. */
bool break_up(size_t piece);
bool begin_to_soak(void);
bool soak_up_block(void);
bool hold_memory(void);
bool hold_memory_in(size_t piece);
bool hold_node(int node);
bool hold_more(void);
bool hold_pinned(void);
bool hold_locked(void);
void lose(void);
bool let_go(void);

/* econ_nodes.c */
char *map_on(size_t size, int node);

/* econ_stalls.c */
void touch_unprofiled(bool is_advised);

/* econ_compact.c */
long ledgers(const char *number);
void check_that_blocks_come(void);
bool touch_heap_again(useconds_t pause);

/* econ_zero.c: blocks that are zeroed ahead. */
int touch_each_of_8(void);
long zeroed(const char *what);
long wait_for_blocks(long blocks, int seconds);
void want_many(void);
void free_more_blocks(void);
void print_stock(void);
bool stock_up(long blocks);
bool takes_all(const char *rows, const char *part);
bool limit_to(const char *blocks);
void all_are_accounted_for(void);

#endif
