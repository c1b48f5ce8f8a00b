// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Shared buffers, as a database has them: a writer and a reader, two processes that have the same memory mapped. The
 * writer changes pages, the reader checks them and counts their uses in the same memory. The reader inherits its
 * mapping by fork, as the processes of PostgreSQL do.
 *
 *     cc -O2 -o buffers buffers.c && ./buffers [PAGES [WRITES]]
 *
 * Afterwards the buffers are sealed: a snapshot that nobody can change, and that could be sent to others.
 * TOLLFREE_MORSELS names a directory on morselfs, if there is one.
 */
#define _GNU_SOURCE
#include "morsel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { WORDS = 8192 / 8 - 3 };

/* 8 KiB. `version` is odd while the page changes, and 0 before its first change. */
struct page {
	uint64_t version, sum, uses, words[WORDS];
};

/* In the first page. */
struct control {
	uint64_t is_over;
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t get(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

static void set(uint64_t *at, uint64_t value)
{
	__atomic_store_n(at, value, __ATOMIC_RELAXED);
}

static uint64_t any(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* There is one writer: readers that saw part of a change see another version afterwards. */
static void write_page(struct page *page, uint64_t seed)
{
	uint64_t version = get(&page->version), sum = 0;

	set(&page->version, version + 1);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	for (int i = 0; i < WORDS; i++) {
		uint64_t word = any(&seed);

		set(&page->words[i], word);
		sum += word;
	}
	set(&page->sum, sum);
	__atomic_store_n(&page->version, version + 2, __ATOMIC_RELEASE);
}

/* Returns whether the page was seen as a whole. */
static int read_page(struct page *page)
{
	uint64_t version = __atomic_load_n(&page->version, __ATOMIC_ACQUIRE), expected, sum = 0;

	for (int i = 0; i < WORDS; i++)
		sum += get(&page->words[i]);
	expected = get(&page->sum);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	if (version % 2 || get(&page->version) != version)
		return 0;
	if (sum != expected) {
		fprintf(stderr, "a page of version %" PRIu64 " is damaged\n", version);
		exit(1);
	}
	__atomic_add_fetch(&page->uses, 1, __ATOMIC_RELAXED);
	return 1;
}

static long page_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

/* In the reader: reads pages until the writer is done, and then each once more. */
static void read_all(struct control *control, struct page *pages, size_t count)
{
	uint64_t state = 2463534242, reads = 0, again = 0;
	long faults = page_faults();

	while (!__atomic_load_n(&control->is_over, __ATOMIC_ACQUIRE))
		read_page(&pages[any(&state) % count]) ? reads++ : again++;
	for (size_t i = 0; i < count; i++)
		if (!read_page(&pages[i])) {
			fprintf(stderr, "page %zu changes without a writer\n", i);
			exit(1);
		}
	printf("reader: %" PRIu64 " reads, %" PRIu64 " of a page that changed, %ld page faults\n",
	       reads + again + count, again, page_faults() - faults);
	exit(0);
}

static void write_all(struct control *control, struct page *pages, size_t count, uint64_t writes)
{
	uint64_t state = 88172645463325252;
	long faults = page_faults();

	for (uint64_t i = 0; i < writes; i++)
		write_page(&pages[any(&state) % count], i + 1);
	__atomic_store_n(&control->is_over, 1, __ATOMIC_RELEASE);
	printf("writer: %" PRIu64 " writes, %ld page faults\n", writes, page_faults() - faults);
	fflush(stdout);
}

/* What the reader counted is in the memory of the writer. */
static uint64_t uses(const struct page *pages, size_t count)
{
	uint64_t all = 0;

	for (size_t i = 0; i < count; i++)
		all += get(&pages[i].uses);
	return all;
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 8192;
	uint64_t writes = argc > 2 ? strtoull(argv[2], NULL, 0) : 100000;
	const char *directory = getenv("TOLLFREE_MORSELS");
	struct control *control;
	struct page *pages;
	struct morsel m;
	pid_t reader;
	int status;

	if (count < 1 || writes < 1) {
		fprintf(stderr, "usage: %s [PAGES [WRITES]]\n", argv[0]);
		return 2;
	}
	if (morsel_create(&m, directory && *directory ? directory : NULL, (count + 1) * sizeof(struct page)) < 0)
		die("create");
	control = (struct control *)m.start;
	pages = (struct page *)m.start + 1;
	printf("%zu pages of 8 KiB (%s)\n", count, morsel_from_name(&m));
	fflush(stdout);
	reader = fork();
	if (reader < 0)
		die("fork");
	if (reader == 0)
		read_all(control, pages, count);
	write_all(control, pages, count, writes);
	if (waitpid(reader, &status, 0) < 0)
		die("waitpid");
	if (status != 0)
		return 1;
	printf("%" PRIu64 " uses counted by the reader\n", uses(pages, count));
	if (morsel_seal(&m) < 0)
		die("seal");
	if (morsel_map(&m) < 0)
		die("map");
	printf("sealed, with %" PRIu64 " uses\n", uses((struct page *)m.start + 1, count));
	morsel_drop(&m);
	return 0;
}
