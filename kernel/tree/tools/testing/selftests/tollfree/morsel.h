/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the files of the program morsel. */
#ifndef TOLLFREE_MORSEL_H
#define TOLLFREE_MORSEL_H

#include <sys/types.h>

#include "harness.h"
#include "morsel_test.h"

#define GIB	0x40000000UL
#define MOUNT	"/tmp/morsel"
#define STOP_AT	SYSFS "stop_at"

extern const struct test morsel_file_tests[], morsel_map_tests[], morsel_seal_tests[],
	morsel_process_tests[], morsel_shared_tests[], morsel_populate_tests[],
	morsel_race_tests[], morsel_mm_tests[], morsel_limits_tests[], morsel_fail_tests[],
	morsel_block_tests[], morsel_broken_tests[], morsel_xattr_tests[];

/* Mount in which make() makes morsels. */
extern const char *mounted;

/* Content: one word in each step. */
uint64_t word_of(size_t at);
void write_words(char *memory, size_t length, size_t step);
bool has_words(const char *memory, size_t offset, size_t length, size_t step);
bool all_zero(const char *memory, size_t length);

/* Morsels and mappings. */
int make(size_t size);
int make_filled(size_t size, size_t step);
int make_sealed(size_t size, size_t step);
char *map(int fd, size_t size, int protection);
bool others_see(int fd, size_t size, size_t step);
void leave(int fd, char *memory, size_t size);
void nothing_is_left(void);

/* Processes. */
bool ends_well(pid_t child);
int child_status(void (*call)(char *), char *argument);
void touch_for_reading(char *at);
void touch_for_writing(char *at);
bool dies_by(int status, int signal);

/* Places where the kernel stops a task on request. */
bool can_stop(void);
void wait_for_stopped(void);

/* The kernel's view of mappings and pages. */
long smaps_of(const char *memory, const char *line);
uint64_t word_in(const char *path, uint64_t page);
uint64_t pfn_of(const char *at);
long mapped_by(const char *at);
void poison(char *at);

#endif
