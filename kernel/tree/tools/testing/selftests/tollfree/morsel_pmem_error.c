// SPDX-License-Identifier: GPL-2.0-only
/* Persistent morsels: broken pages, if the kernel allows to inject memory failures. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "morsel_pmem.h"
#include "morsel_test.h"

/* Return: false if the kernel cannot. */
static bool break_page(char *at)
{
	long before = count("stats/broken");

	if (madvise(at, PAGE, MADV_HWPOISON)) {
		lacks = "no hwpoison";
		return false;
	}
	return CHECK(count("stats/broken") == before + 1);
}

static char *told;

static void be_told(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)context;
	_exit(info->si_code == BUS_MCEERR_AR && info->si_addr == told ? 3 : 4);
}

/* Whether a process that accesses an address is told that it is broken. */
static bool is_broken(char *at)
{
	struct sigaction action = { .sa_sigaction = be_told, .sa_flags = SA_SIGINFO };
	pid_t pid = fork();
	int status;

	if (!pid) {
		told = at;
		sigaction(SIGBUS, &action, NULL);
		load(at);
		_exit(5);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 3;
}

static void every_user_of_a_broken_page_is_told(void)
{
	size_t size = 2 * BLOCK + 3 * PAGE, broken = BLOCK + 7 * PAGE, last = 2 * BLOCK + PAGE;
	char *memory, *other, *by_page, text[2 * PAGE];
	int fd, whole;

	begin();
	fd = create(MOUNT "/broken");
	write_words(fd, 0, size);
	whole = create(MOUNT "/whole");
	write_words(whole, 0, BLOCK);
	CHECK(!fcntl(fd, F_ADD_SEALS, ALL) && !fcntl(whole, F_ADD_SEALS, ALL));
	memory = map(fd, size, PROT_READ);
	other = map(whole, BLOCK, PROT_READ);
	by_page = map(fd, size, PROT_READ | PROT_EXEC);
	CHECK(is_filled(memory, 0, size) && is_filled(other, 0, BLOCK));
	CHECK(is_filled(by_page, 0, size));
	if (!break_page(memory + broken))
		goto out;
	CHECK(break_page(memory + last));
	CHECK(is_broken(memory + broken) && is_broken(by_page + broken));
	CHECK(is_broken(memory + last) && is_broken(by_page + last));
	CHECK(pread(fd, text, PAGE, broken) < 0 && errno == EIO);
	CHECK(pread(fd, text, 2 * PAGE, broken - PAGE) == PAGE);
	/* All others are there, in both mappings. */
	CHECK(is_filled(memory, 0, broken) && is_filled(memory, broken + PAGE, last));
	CHECK(is_filled(memory, last + PAGE, size));
	CHECK(is_filled(by_page, 0, broken) && is_filled(by_page, broken + PAGE, last));
	CHECK(is_filled(by_page, last + PAGE, size));
	CHECK(is_filled(other, 0, BLOCK) && pread(whole, text, PAGE, PAGE) == PAGE);
	/* Once more: it stays, and nothing else happens. */
	CHECK(is_broken(memory + broken));
out:
	munmap(memory, size);
	munmap(by_page, size);
	munmap(other, BLOCK);
	close(fd);
	close(whole);
	unmount();
}

static void broken_pages_are_not_used_again(void)
{
	char *memory, page[PAGE];
	long before, pages = 0;
	int fd;

	begin();
	before = free_pages();
	fd = create(MOUNT "/file");
	write_words(fd, 0, BLOCK + 2 * PAGE);
	memory = map(fd, BLOCK + 2 * PAGE, PROT_READ | PROT_WRITE);
	CHECK(is_filled(memory, 0, BLOCK + 2 * PAGE));
	if (!break_page(memory + PAGE))
		goto out;
	CHECK(break_page(memory + BLOCK + PAGE));
	CHECK(is_broken(memory + PAGE) && is_broken(memory + BLOCK + PAGE));
	CHECK(pwrite(fd, "x", 1, PAGE) < 0 && errno == EIO);
	CHECK(pwrite(fd, "x", 1, BLOCK + PAGE) < 0 && errno == EIO);
	store(memory, 1);
	CHECK(load(memory) == 1);
	/* A hole takes a broken page from the file, if it takes its block. */
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, BLOCK));
	CHECK(!load(memory + PAGE) && is_broken(memory + BLOCK + PAGE));
	CHECK(!ftruncate(fd, 0));
	fill(page, 0, PAGE);
	while (write(fd, page, PAGE) == (ssize_t)PAGE)
		pages++;
	CHECK(errno == ENOSPC && pages > before - 64);
	/* The two broken ones, and no other. */
	CHECK(free_pages() == 2);
	for (long i = 0; i < pages; i++)
		CHECK(pread(fd, page, PAGE, i * PAGE) == PAGE && is_filled(page, 0, PAGE));
out:
	munmap(memory, BLOCK + 2 * PAGE);
	close(fd);
	mount_again();
	/* The driver tells the next mount itself. */
	fd = open(MOUNT "/file", O_RDONLY);
	CHECK(fd >= 0 && read(fd, page, PAGE) == PAGE);
	close(fd);
	unmount();
}

const struct test error_tests[] = {
	TEST(every_user_of_a_broken_page_is_told),
	TEST(broken_pages_are_not_used_again),
	{}
};
