// SPDX-License-Identifier: GPL-2.0-only
/* Tests of broken pages. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "morsel.h"

/* Only if the kernel allows to inject memory failures. */
static void a_broken_page_is_no_other(void)
{
	size_t size = 4 * MIB, broken = 2 * MIB + PAGE;
	int fd = make_sealed(size, PAGE);
	char *memory = map(fd, size, PROT_READ), *by_page;
	long before = count("pages");

	CHECK(memory != MAP_FAILED);
	if (!dies_by(child_status(poison, memory + broken), SIGBUS)) {
		lacks = "no hwpoison";
	} else {
		CHECK(has_words(memory, 0, broken, PAGE));
		CHECK(has_words(memory + broken + PAGE, broken + PAGE, MIB, PAGE));
		by_page = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
		CHECK(by_page != MAP_FAILED && has_words(by_page, 0, broken, PAGE));
		CHECK(dies_by(child_status(touch_for_reading, by_page + broken), SIGBUS));
		CHECK(count("pages") == before);
		munmap(by_page, size);
	}
	munmap(memory, size);
	close(fd);
}

#define KPF_BUDDY		10
#define KPF_COMPOUND_HEAD	15
#define KPF_HWPOISON		19

static bool page_is(uint64_t pfn, int flag)
{
	return word_in("/proc/kpageflags", pfn) >> flag & 1;
}

static char *told;

/* Poisoning a page that is poisoned already is handled as an access to it. */
static void be_told(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	_exit(info->si_code == BUS_MCEERR_AR && info->si_addr == told ? 3 : 4);
}

static void poison_and_be_told(char *at)
{
	struct sigaction action = { .sa_sigaction = be_told, .sa_flags = SA_SIGINFO };

	told = at;
	sigaction(SIGBUS, &action, NULL);
	poison(at);
}

static bool is_told(char *at)
{
	int status = child_status(poison_and_be_told, at);

	return WIFEXITED(status) && WEXITSTATUS(status) == 3;
}

/* Attached, as single pages, and by read(). */
static void every_user_of_a_broken_page_is_told(void)
{
	size_t size = 4 * MIB, broken = 2 * MIB + 7 * PAGE;
	long large = count("stats/filled_large");
	int fd = make(size);
	char *memory, *by_page, text[2 * PAGE];
	uint64_t block = 0;

	CHECK(!fallocate(fd, 0, 0, size));
	large = count("stats/filled_large") - large;
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED);
	write_words(memory, size, PAGE);
	munmap(memory, size);
	by_page = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(by_page != MAP_FAILED && has_words(by_page, 0, size, PAGE));
	if (large < 2) {
		lacks = "no blocks of 2 MiB";
		goto out;
	}
	block = pfn_of(by_page);
	child_status(poison, by_page);
	if (!page_is(block, KPF_HWPOISON)) {
		lacks = "no hwpoison";
		block = 0;
		goto out;
	}
	CHECK(pread(fd, text, 1, 0) < 0 && errno == EIO);
	CHECK(pwrite(fd, "x", 1, 0) < 0 && errno == EIO);
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * MIB));
	CHECK(page_is(block, KPF_COMPOUND_HEAD) && page_is(block, KPF_HWPOISON));
	CHECK(pread(fd, text, 1, 0) == 1 && !*text && pwrite(fd, "x", 1, 0) == 1);

	block = pfn_of(by_page + 2 * MIB);
	/* With two mappings the signal may name the other address. */
	munmap(by_page, size);
	CHECK(!fcntl(fd, F_ADD_SEALS, ALL));
	memory = map(fd, size, PROT_READ);
	CHECK(memory != MAP_FAILED && has_words(memory + 2 * MIB, 2 * MIB, 7 * PAGE, PAGE));
	for (int i = 0; i < 3; i++)
		CHECK(is_told(memory + broken));
	by_page = mmap(NULL, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(by_page != MAP_FAILED && has_words(by_page + 2 * MIB, 2 * MIB, 7 * PAGE, PAGE));
	CHECK(dies_by(child_status(touch_for_reading, by_page + broken), SIGBUS));
	CHECK(pread(fd, text, PAGE, broken) < 0 && errno == EIO);
	CHECK(pread(fd, text, 2 * PAGE, broken - PAGE) == PAGE);
	CHECK(has_words(memory + broken + PAGE, broken + PAGE, MIB, PAGE));
	munmap(memory, size);
out:
	munmap(by_page, size);
	close(fd);
	/* The allocator does not reuse the block with the broken page. */
	if (block) {
		CHECK(page_is(block + 7, KPF_HWPOISON));
		CHECK(page_is(block, KPF_COMPOUND_HEAD) && !page_is(block, KPF_BUDDY));
	}
}

/* As for a machine check, without a reference. */
static bool break_page(uint64_t pfn)
{
	char text[32];

	snprintf(text, sizeof(text), "0x%lx", pfn * PAGE);
	write_text("/sys/devices/system/memory/hard_offline_page", text);
	return page_is(pfn, KPF_HWPOISON);
}

/* Broken pages of 4 KiB. */
static void a_small_broken_page_stays_away(void)
{
	char *memory, *by_page;
	uint64_t page, next, word;
	int fd;

	mkdir("/tmp/pages", 0700);
	CHECK(!mount("none", "/tmp/pages", "morselfs", 0, "huge=never"));
	mounted = "/tmp/pages";
	fd = make_sealed(2 * MIB, PAGE);
	mounted = MOUNT;
	memory = map(fd, 2 * MIB, PROT_READ);
	by_page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	CHECK(memory != MAP_FAILED && by_page != MAP_FAILED);
	CHECK(load(memory) == word_of(0) && has_words(by_page, 0, 2 * PAGE, PAGE));
	page = pfn_of(by_page);
	next = pfn_of(by_page + PAGE);
	child_status(poison, memory);
	if (!page_is(page, KPF_HWPOISON)) {
		lacks = "no hwpoison";
		page = 0;
	} else {
		CHECK(is_told(memory) && is_told(memory));
		CHECK(dies_by(child_status(touch_for_reading, by_page), SIGBUS));
		CHECK(pread(fd, &word, 8, 0) < 0 && errno == EIO);
		CHECK(has_words(memory + PAGE, PAGE, 2 * MIB - PAGE, PAGE));
		/* The only reference is that of the morsel, which keeps it. */
		munmap(by_page, 2 * PAGE);
		CHECK(break_page(next));
		by_page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
		CHECK(by_page != MAP_FAILED);
		for (int i = 0; i < 2; i++)
			CHECK(dies_by(child_status(touch_for_reading, by_page + PAGE), SIGBUS));
		CHECK(pread(fd, &word, 8, PAGE) < 0 && errno == EIO);
		CHECK(is_told(memory + PAGE));
		CHECK(has_words(memory + 2 * PAGE, 2 * PAGE, 2 * MIB - 2 * PAGE, PAGE));
	}
	munmap(memory, 2 * MIB);
	munmap(by_page, 2 * PAGE);
	close(fd);
	CHECK(!umount("/tmp/pages"));
	rmdir("/tmp/pages");
	if (page) {
		CHECK(page_is(page, KPF_HWPOISON) && !page_is(page, KPF_BUDDY));
		CHECK(page_is(next, KPF_HWPOISON) && !page_is(next, KPF_BUDDY));
	}
}

const struct test morsel_broken_tests[] = {
	TEST(a_broken_page_is_no_other),
	TEST(every_user_of_a_broken_page_is_told),
	TEST(a_small_broken_page_stays_away),
	{}
};
