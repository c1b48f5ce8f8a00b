/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the files of the program luf_pool. */
#ifndef TOLLFREE_LUF_POOL_H
#define TOLLFREE_LUF_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "harness.h"
#include "luf_test.h"

enum { PAGES = 2048, CHUNK = 32, WORDS = PAGE / sizeof(uint32_t) };

extern const struct test luf_pool_wait_tests[], luf_pool_frames_tests[];

/* The mapped file; the first word of each page identifies it. */
extern const uint32_t *at;
extern int file;

bool touch(int from, int to);
bool defer(int from, int to);
bool defer_some(long pages);
long waiting(void);
bool becomes_empty(double seconds);
void set_number(const char *path, long value);
long sum_of(const char *path, const char *name);
uint64_t frame_of(const void *page);
bool has_flag(uint64_t frame, int bit);
double now(void);

#endif
