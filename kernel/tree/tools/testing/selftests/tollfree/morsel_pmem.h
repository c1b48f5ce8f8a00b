/* SPDX-License-Identifier: GPL-2.0-only */
/* The image of the tests of persistent morsels, on /dev/pmem0, and its mount. */
#ifndef TOLLFREE_MORSEL_PMEM_H
#define TOLLFREE_MORSEL_PMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "harness.h"
#include "morsel_image.h"
#include "test.h"

#define DEVICE	"/dev/pmem0"
#define MOUNT	"/tmp/morsel-pmem"

/* Pages of the image of these tests. */
enum {
	TABLE = IMAGE_FREE,
	LOWER,
	FIRST,
	LAST,
	SMALL,
	TARGET,
	RENAMED,
};

/* The morsel has a hole of a page, a page, a hole, a block, a page and 100 bytes. */
#define SIZE	((1024 + 1) * PAGE + 100)

/* Places of the words of the image. */
extern const uint64_t words[];
extern const size_t nr_words;

uint64_t content_of(uint64_t page);
void fill_page(uint64_t page);
uint64_t expected(size_t at);
void make_image(void);
void write_device(const void *bytes, size_t length, off_t at);
void write_image(void);
void write_word(uint64_t offset, uint64_t payload);
void need_device(void);
int mount_device(void);
void mount_image(void);
void unmount(void);
int mount_error(void);

/* morsel_pmem_write.c */

#define BLOCK	(2UL << 20)

extern const struct test write_tests[];

void begin(void);
void mount_again(void);
int create(const char *path);
long free_pages(void);
void fill(char *memory, size_t from, size_t to);
bool is_filled(const char *memory, size_t from, size_t to);
void write_words(int fd, size_t from, size_t length);
char *map(int fd, size_t length, int protection);

/* morsel_pmem_error.c */

extern const struct test error_tests[];

#endif
