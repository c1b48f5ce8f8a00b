// SPDX-License-Identifier: GPL-2.0-only
/* Tests with failing allocations, and with processes that are killed on the way. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "morsel.h"

#define INJECT	"/sys/kernel/debug/"

/* All operations that allocate; errors are ignored. */
static void use_one(void)
{
	int fd = open(MOUNT, O_RDWR | O_TMPFILE, 0600);
	size_t size = 2 * MIB + 2 * PAGE;
	uint64_t word;
	char *memory;

	if (fd < 0 || ftruncate(fd, size))
		return;
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	if (memory != MAP_FAILED) {
		for (size_t at = 0; at < size; at += MIB)
			try_to_store(memory + at, word_of(at));
		munmap(memory, size);
	}
	pwrite(fd, "x", 1, 3 * MIB);
	if (!fcntl(fd, F_ADD_SEALS, ALL)) {
		memory = map(fd, size, PROT_READ);
		if (memory != MAP_FAILED)
			try_to_load(memory, &word);
	}
	close(fd);
}

/* Fail the first, the second, and so on, until none is left. */
static void each_allocation_may_fail(void)
{
	static const char *const lists[] = { "failslab", "fail_page_alloc" };
	int nth = 0, pair[2];
	char left[16] = "";

	if (access("/proc/self/fail-nth", W_OK)) {
		lacks = "no fault injection";
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		char path[128];

		snprintf(path, sizeof(path), INJECT "%s/ignore-gfp-wait", lists[i]);
		CHECK(write_text(path, "N"));
		snprintf(path, sizeof(path), INJECT "%s/verbose", lists[i]);
		CHECK(write_text(path, "0"));
	}
	CHECK(write_text(INJECT "fail_page_alloc/min-order", "0"));
	CHECK(write_text(INJECT "fail_page_alloc/ignore-gfp-highmem", "N"));
	do {
		pid_t pid;

		nth++;
		CHECK(!pipe(pair));
		pid = fork();
		if (!pid) {
			int fd = open("/proc/self/fail-nth", O_RDWR);

			signal(SIGBUS, jump);
			dprintf(fd, "%d", nth);
			use_one();
			/* Remaining count: 0 if an allocation failed. */
			pread(fd, left, sizeof(left) - 1, 0);
			pwrite(fd, "0", 1, 0);
			write(pair[1], left, sizeof(left));
			_exit(0);
		}
		close(pair[1]);
		CHECK(read(pair[0], left, sizeof(left)) == sizeof(left));
		CHECK(ends_well(pid));
		close(pair[0]);
	} while (!failed && nth < 1000 && !atoi(left));
	ksft_print_msg("%d allocations failed\n", nth - 1);
	CHECK(nth > 10 && nth < 1000);
}

#define PROBES	"/sys/bus/event_source/devices/kprobe/type"

/* Kill a process at its nth call of a kernel function. */
static int kill_at(pid_t pid, const char *function, int nth)
{
	struct perf_event_attr attr = {
		.type = number(PROBES),
		.size = sizeof(attr),
		.kprobe_func = (uintptr_t)function,
		.sample_period = nth,
	};
	int fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return fd;
	CHECK(!fcntl(fd, F_SETOWN, pid));
	CHECK(!fcntl(fd, F_SETSIG, SIGKILL));
	CHECK(!fcntl(fd, F_SETFL, O_ASYNC));
	return fd;
}

/* Whether a process that uses everything survives. */
static bool lives(const char *function, int nth, bool *is_there)
{
	int status = 0, pair[2], probe;
	pid_t pid;
	char go;

	CHECK(!pipe(pair));
	pid = fork();
	if (!pid) {
		close(pair[1]);
		signal(SIGBUS, jump);
		if (read(pair[0], &go, 1) == 1)
			use_one();
		_exit(0);
	}
	close(pair[0]);
	probe = kill_at(pid, function, nth);
	*is_there = probe >= 0;
	CHECK(!*is_there || write(pair[1], "", 1) == 1);
	close(pair[1]);
	CHECK(waitpid(pid, &status, 0) == pid && (!status || dies_by(status, SIGKILL)));
	close(probe);
	return !status;
}

/* Functions on the path of attaching, from mmap() to the exit of the process. */
static void each_step_may_be_the_last(void)
{
	/* Compilers may have inlined some of them. */
	static const char *const functions[] = {
		"morsel_mmap", "morsel_get_unmapped_area", "morsel_attach_all",
		"morsel_attach_puds", "morsel_attach_pmds", "morsel_set_puds",
		"morsel_set_pmds", "__morsel_fault", "morsel_page_fault", "morsel_map_around",
		"morsel_install_prealloc", "morsel_fill", "morsel_enter", "morsel_add_region",
		"morsel_provide", "morsel_alloc_large", "morsel_alloc_small",
		"morsel_install_large", "morsel_install_small", "morsel_install_pmd_table",
		"morsel_install_pte_table", "morsel_close", "morsel_open", "morsel_protect",
		"__morsel_unmap", "morsel_vm_close", "morsel_remove", "mmap_region",
		"handle_mm_fault", "__p4d_alloc", "__pud_alloc", "__pmd_alloc", "pte_alloc_one",
		"folio_zero_user", "set_pte_range", "unmap_page_range", "unmap_mapping_pages",
		"free_pgtables",
	};
	int there = 0, killed = 0;

	if (access(PROBES, R_OK)) {
		lacks = "no probes";
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(functions) && !failed; i++) {
		bool is_there = true;
		int nth = 1;

		while (nth <= 8 && !failed && !lives(functions[i], nth, &is_there))
			nth++;
		there += is_there;
		killed += nth - 1;
		nothing_is_left();
		if (failed)
			ksft_print_msg("killed in %s\n", functions[i]);
	}
	ksft_print_msg("killed at %d calls of %d functions\n", killed, there);
	CHECK(there > 20 && killed > 30);
}

const struct test morsel_fail_tests[] = {
	TEST(each_allocation_may_fail),
	TEST(each_step_may_be_the_last),
	{}
};
