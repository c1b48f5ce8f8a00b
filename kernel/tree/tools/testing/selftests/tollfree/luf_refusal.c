// SPDX-License-Identifier: GPL-2.0-only
/* Tests of memory that must not be unmapped lazily. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "luf.h"

/* Elsewhere a task can write that has faulted nothing in: no entry shows it. */
static void *shmem(void)
{
	int *at = reclaimable(mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0));

	old_page(at);
	elsewhere = mremap(at, 0, PAGE, MREMAP_MAYMOVE);
	must(elsewhere != MAP_FAILED && !madvise(at, PAGE, MADV_DONTNEED) &&
	     !mprotect(at, PAGE, PROT_READ), "shared memory");
	return at;
}

static void *memfd(void)
{
	int fd = memfd_create("luf", 0);
	int words[PAGE / sizeof(int)];

	old_page(words);
	must(fd >= 0 && write(fd, words, PAGE) == (ssize_t)PAGE, "memfd");
	elsewhere = reclaimable(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	file = fd;
	return reclaimable(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0));
}

static void *sysv(void)
{
	int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
	void *at = shmat(id, NULL, SHM_RDONLY), *before = shmat(id, NULL, 0);

	must(before != MAP_FAILED, "shmat");
	old_page(before);
	shmdt(before);
	elsewhere = reclaimable(shmat(id, NULL, 0));
	shmctl(id, IPC_RMID, NULL);
	return reclaimable(at);
}

static void *written_file(void)
{
	void *at = map(PROT_READ, MAP_SHARED);

	kept = open(names[0], O_RDWR);
	must(kept >= 0, names[0]);
	return at;
}

static void *remotely_written_file(void)
{
	int *at = remote_file();

	if (at)
		act_write_remotely(at);
	return at;
}

static void *written_memory(void)
{
	int *at = anonymous_page();

	old_page(at);
	return at;
}

static void *lazily_freed(void)
{
	int *at = written_memory();

	must(!madvise(at, PAGE, MADV_FREE), "MADV_FREE");
	return at;
}

static void *merged(void)
{
	int *at, *twin;

	if (access(KSM, F_OK))
		return cannot("a kernel without CONFIG_KSM");
	at = written_memory();
	twin = merge(at);
	/* MADV_PAGEOUT works on a page that is mapped once. */
	must(!madvise(twin, PAGE, MADV_DONTNEED), "MADV_DONTNEED");
	return at;
}

static const struct refusal {
	const char *name;
	void *(*set_up)(void);
	const char *reason;
} refusals[] = {
	{ "shared anonymous memory", shmem, "refused_mapping" },
	{ "a memfd", memfd, "refused_mapping" },
	{ "System V shared memory", sysv, "refused_mapping" },
	{ "a file with a writer", written_file, "refused_writer" },
	{ "a file that a remote client may write", remotely_written_file, "refused_mapping" },
	{ "memory that was written", written_memory, "refused_writable" },
	{ "lazily freed memory", lazily_freed, "refused_kind" },
	{ "memory that KSM merged", merged, "refused_kind" },
};

/*
 * After reclaim the reader faults, and usually maps it again at once.
 * Check that it was refused for the expected reason.
 */
static bool is_refused(const int *at, const char *reason)
{
	long before = count(reason), faults;
	int most = tries();

	for (int i = 0; i < most; i++) {
		read_now();
		faults = get(reader.faults);
		reclaim_all();
		/* Reclaims the page although it is read all the time. */
		madvise((void *)at, PAGE, MADV_PAGEOUT);
		read_now();
		if (get(reader.faults) != faults)
			return count(reason) > before;
		if (!is_mapped(at)) {
			ksft_print_msg("STALE\n");
			return false;
		}
		wait_a_bit();
	}
	ksft_print_msg("it was not reclaimed\n");
	return false;
}

static void try_refusal(const struct refusal *test)
{
	int *at = test->set_up();
	char name[80];

	if (at) {
		start_reader(at);
		failed |= !is_refused(at, test->reason);
		if (elsewhere) {
			new_page(elsewhere);
			failed |= read_now() != NEW;
		}
		clean_up(at);
	}
	snprintf(name, sizeof(name), "%s is not unmapped lazily", test->name);
	end_test(name);
}

unsigned int count_refusals(void)
{
	return ARRAY_SIZE(refusals);
}

void try_refusals(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		try_refusal(&refusals[i]);
}
