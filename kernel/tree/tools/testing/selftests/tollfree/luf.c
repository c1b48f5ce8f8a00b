// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lazy unmap flush: litmus tests of coherence.
 *
 * A reader spins on one CPU and holds a translation. The page is reclaimed; that
 * the translation is stale is seen by the reader's still reading the old value
 * without a fault while the page table has no entry. Then somebody does what
 * must not leave the old value readable, and after that the reader may not see
 * it again.
 *
 * Needs root, cgroups, two CPUs, swap, and a folder on ext4, xfs or btrfs:
 * $TOLLFREE_TEST_DIR, /data if that is not set.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "luf_test.h"

#define TRIES		40

enum { OLD = 0x01d01d01, NEW = 0x0eee0eee, OTHER = 0x07e47e47, FAULTED = -1 };

/* The reader */

static struct {
	pthread_t thread;
	const int *at;
	int value;
	long rounds;
	long faults;	/* of memory, not of access */
	bool stop;
} reader;

static __thread sigjmp_buf no_access;

static void on_no_access(int signal)
{
	siglongjmp(no_access, signal);
}

static void pin(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static long memory_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static void *read_on(void *unused)
{
	pin(1);
	while (!get(reader.stop)) {
		if (sigsetjmp(no_access, 1))
			set(reader.value, FAULTED);
		else
			for (int i = 0; i < 100; i++)
				set(reader.value, get(*reader.at));
		set(reader.faults, memory_faults());
		__atomic_add_fetch(&reader.rounds, 1, __ATOMIC_SEQ_CST);
	}
	return unused;
}

/* What the reader reads from now on. */
static int read_now(void)
{
	long rounds = get(reader.rounds);

	while (get(reader.rounds) < rounds + 2)
		sched_yield();
	return get(reader.value);
}

static void start_reader(const void *at)
{
	reader.at = at;
	set(reader.stop, false);
	if (pthread_create(&reader.thread, NULL, read_on, NULL))
		ksft_exit_fail_msg("no thread: %s\n", strerror(errno));
	read_now();
}

static void stop_reader(void)
{
	set(reader.stop, true);
	pthread_join(reader.thread, NULL);
}

/* What is around */

static long count(const char *name)
{
	char path[128], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), LUF "stats/%s", name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	close(fd);
	return atol(text);
}

static long deferred(void)
{
	return count("deferred_direct") + count("deferred_kswapd");
}

static bool is_mapped(const void *at)
{
	static int fd = -1;
	uint64_t entry = 0;

	if (fd < 0)
		fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pread(fd, &entry, sizeof(entry), (uintptr_t)at / PAGE * sizeof(entry)) !=
	    sizeof(entry))
		ksft_exit_fail_msg("pagemap: %s\n", strerror(errno));
	return entry >> 63;
}

static void reclaim_all(void)
{
	/* It fails where it cannot reclaim that much. */
	write_text(GROUP "/test/memory.reclaim", "64M");
}

/* Reclaims the page; true once the reader reads it though nothing maps it. */
static bool make_stale(const void *at)
{
	long before = deferred(), faults = 0;
	int value = OLD, unmapped = 0;

	for (int i = 0; i < TRIES; i++) {
		read_now();
		faults = get(reader.faults);
		reclaim_all();
		if (is_mapped(at))
			continue;
		unmapped++;
		value = read_now();
		if (value == OLD && get(reader.faults) == faults && !is_mapped(at) &&
		    deferred() > before)
			return true;
	}
	ksft_print_msg("unmapped %d times of %d, %ld pages lazily; read 0x%x, %ld faults\n",
		       unmapped, TRIES, deferred() - before, value,
		       get(reader.faults) - faults);
	return false;
}

/*
 * With page-table isolation each interrupt changes over to the kernel's tables.
 * A CPU that emulates no PCIDs forgets everything there, and nothing is ever
 * stale; any other one keeps its translations.
 */
static bool isolates_tables(void)
{
	char text[4096] = "";
	int fd = open("/proc/cpuinfo", O_RDONLY);
	ssize_t length = read(fd, text, sizeof(text) - 1);

	close(fd);
	return length > 0 && strstr(text, " pti ");
}

static void not_stale(const char *name)
{
	if (isolates_tables())
		ksft_test_result_skip("%s: no translation outlives an interrupt\n", name);
	else
		ksft_test_result_fail("%s: the page was not unmapped lazily\n", name);
}

/* One test */

struct litmus {
	const char *name;
	/* Where the reader reads; the page holds OLD. */
	int *(*set_up)(void);
	/* After which OLD is not to be read any more. */
	void (*act)(int *at);
	/* What is read instead: FAULTED, a value, or 0 for anything else. */
	int expected;
};

static int file;	/* for reading */
static const char *const names[] = { "luf-a", "luf-b" };

static void fill(const char *name, int value, size_t size)
{
	int words[PAGE / sizeof(int)];
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	for (size_t i = 0; i < PAGE / sizeof(int); i++)
		words[i] = value;
	if (fd < 0 || write(fd, words, size) != (ssize_t)size || fsync(fd))
		ksft_exit_fail_msg("%s: %s\n", name, strerror(errno));
	close(fd);
}

static void must(bool done, const char *what)
{
	if (!done)
		ksft_exit_fail_msg("%s: %s\n", what, strerror(errno));
}

static void *reclaimable(void *at)
{
	must(at != MAP_FAILED && !munlock(at, PAGE), "mmap");
	return at;
}

static void *map(int protection, int flags)
{
	fill(names[0], OLD, PAGE);
	fill(names[1], OTHER, PAGE);
	file = open(names[0], O_RDONLY | O_CLOEXEC);
	return reclaimable(mmap(NULL, PAGE, protection, flags, file, 0));
}

static int *shared_file(void)
{
	return map(PROT_READ, MAP_SHARED);
}

static int *private_file(void)
{
	return map(PROT_READ | PROT_WRITE, MAP_PRIVATE);
}

static int *read_only_private_file(void)
{
	return map(PROT_READ, MAP_PRIVATE);
}

/* What stands in the file in place of OLD. */
static void new_page(int *words)
{
	for (size_t i = 0; i < PAGE / sizeof(int); i++)
		words[i] = NEW;
}

static int *aligned_page(void)
{
	static int words[2 * PAGE / sizeof(int)];
	int *aligned = (int *)(((uintptr_t)words + PAGE - 1) & -PAGE);

	new_page(aligned);
	return aligned;
}

static void write_with(int flags)
{
	int fd = open(names[0], O_RDWR | flags);

	must(fd >= 0 && pwrite(fd, aligned_page(), PAGE, 0) == PAGE, "pwrite");
	close(fd);
}

static void act_write(int *at)
{
	write_with(0);
}

static void act_write_direct(int *at)
{
	write_with(O_DIRECT);
}

static void act_write_twice(int *at)
{
	int first = open(names[0], O_WRONLY);

	write_with(0);
	close(first);
}

static void *write_as_one_of_many(void *wrong)
{
	write_with(0);
	/* Whoever is done is done, whatever the others wait for. */
	if (read_now() == OLD)
		set(*(bool *)wrong, true);
	return NULL;
}

static void act_three_writers(int *at)
{
	bool wrong = false;
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, write_as_one_of_many, &wrong);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	must(!wrong, "one of three writers was done too early");
}

static void act_write_shared(int *at)
{
	int fd = open(names[0], O_RDWR);
	int *there = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	must(there != MAP_FAILED, "mmap");
	new_page(there);
	munmap(there, PAGE);
	close(fd);
}

static void act_truncate(int *at)
{
	must(!truncate(names[0], 0), "truncate");
}

static void act_truncate_and_grow(int *at)
{
	must(!truncate(names[0], 0) && !truncate(names[0], PAGE), "truncate");
}

static void act_open_truncating(int *at)
{
	close(open(names[0], O_WRONLY | O_TRUNC));
	must(!truncate(names[0], PAGE), "truncate");
}

static void act_punch_hole(int *at)
{
	int fd = open(names[0], O_RDWR);

	must(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE),
	     "fallocate");
	close(fd);
}

static void act_zero_range(int *at)
{
	int fd = open(names[0], O_RDWR);

	must(!fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, PAGE), "fallocate");
	close(fd);
}

static void act_copy_file_range(int *at)
{
	int from = open(names[1], O_RDONLY), to = open(names[0], O_RDWR);
	loff_t here = 0, there = 0;

	must(copy_file_range(from, &here, to, &there, PAGE, 0) == PAGE, "copy_file_range");
	close(from);
	close(to);
}

static void act_sendfile(int *at)
{
	int from = open(names[1], O_RDONLY), to = open(names[0], O_WRONLY);

	must(sendfile(to, from, NULL, PAGE) == PAGE, "sendfile");
	close(from);
	close(to);
}

static void act_map_fixed(int *at)
{
	must(mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at,
	     "mmap");
}

static void act_map_other_file(int *at)
{
	int other = open(names[1], O_RDONLY);

	must(mmap(at, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, other, 0) == at, "mmap");
	close(other);
}

static void act_unmap(int *at)
{
	must(!munmap(at, PAGE), "munmap");
}

static void act_unmap_and_map(int *at)
{
	act_unmap(at);
	act_map_other_file(at);
}

static void act_mremap_away(int *at)
{
	must(mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		    (char *)at + (1UL << 30)) != MAP_FAILED, "mremap");
}

static void act_mremap_here(int *at)
{
	int other = open(names[1], O_RDONLY);
	void *there = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, other, 0);

	must(mremap(there, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at, "mremap");
	close(other);
}

static void act_protect(int *at)
{
	must(!mprotect(at, PAGE, PROT_NONE), "mprotect");
}

static void act_store(int *at)
{
	new_page(at);
}

static void act_protect_and_store(int *at)
{
	must(!mprotect(at, PAGE, PROT_READ | PROT_WRITE), "mprotect");
	new_page(at);
}

static void act_poke(int *at)
{
	int memory = open("/proc/self/mem", O_RDWR);

	must(pwrite(memory, aligned_page(), PAGE, (off_t)(uintptr_t)at) == PAGE,
	     "/proc/self/mem");
	close(memory);
}

static void act_fork_and_store(int *at)
{
	pid_t child = fork();

	if (!child) {
		pause();
		_exit(0);
	}
	new_page(at);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Anonymous memory: clean and read-only after a swap-in that is shared by fork. */

static pid_t sharer;

static bool is_swapped(const void *at)
{
	return !is_mapped(at);
}

static void swap_out(void *at)
{
	for (int i = 0; i < TRIES && !is_swapped(at); i++) {
		must(!madvise(at, PAGE, MADV_PAGEOUT), "MADV_PAGEOUT");
		usleep(1000);
	}
	must(is_swapped(at), "the page was not swapped out");
}

static void *anonymous_page(void)
{
	return reclaimable(mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static int *anonymous(void)
{
	int *at = anonymous_page();

	for (size_t i = 0; i < PAGE / sizeof(int); i++)
		at[i] = OLD;
	/* Written to swap, read again: clean. */
	swap_out(at);
	get(*at);
	/* And shared: read-only. */
	sharer = fork();
	if (!sharer) {
		pause();
		_exit(0);
	}
	return at;
}

static void end_sharer(void)
{
	if (sharer > 0) {
		kill(sharer, SIGKILL);
		waitpid(sharer, NULL, 0);
	}
	sharer = 0;
}

/* The place is filled by a fault that writes. */
static void act_swap_in_to_store(int *at)
{
	end_sharer();
	new_page(at);
}

/* The place is filled by a fault that reads, and is writable all the same. */
static void act_swap_in_and_store(int *at)
{
	end_sharer();
	get(*at);
	new_page(at);
}

static void act_dontneed(int *at)
{
	must(!madvise(at, PAGE, MADV_DONTNEED), "MADV_DONTNEED");
}

static void act_move(int *at)
{
#ifdef UFFDIO_MOVE
	int *there = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register target = {
		.range = { .start = (uintptr_t)there, .len = PAGE },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct uffdio_move move = {
		.dst = (uintptr_t)there, .src = (uintptr_t)at, .len = PAGE,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	end_sharer();
	must(fd >= 0 && !ioctl(fd, UFFDIO_API, &api) &&
	     !ioctl(fd, UFFDIO_REGISTER, &target), "userfaultfd");
	must(!ioctl(fd, UFFDIO_MOVE, &move), "UFFDIO_MOVE");
	close(fd);
#else
	end_sharer();
	act_dontneed(at);
#endif
}

static const struct litmus litmuses[] = {
	{ "write", shared_file, act_write, NEW },
	{ "write past the page cache", shared_file, act_write_direct, NEW },
	{ "write by a second writer", shared_file, act_write_twice, NEW },
	{ "write by three at a time", shared_file, act_three_writers, NEW },
	{ "write through a shared mapping", shared_file, act_write_shared, NEW },
	{ "truncate", shared_file, act_truncate, FAULTED },
	{ "truncate and grow", shared_file, act_truncate_and_grow, 0 },
	{ "open with O_TRUNC and grow", shared_file, act_open_truncating, 0 },
	{ "punch a hole", shared_file, act_punch_hole, 0 },
	{ "zero a range", shared_file, act_zero_range, 0 },
	{ "copy_file_range", shared_file, act_copy_file_range, OTHER },
	{ "sendfile", shared_file, act_sendfile, OTHER },
	{ "map anonymous memory over it", shared_file, act_map_fixed, 0 },
	{ "map another file over it", shared_file, act_map_other_file, OTHER },
	{ "munmap", shared_file, act_unmap, FAULTED },
	{ "munmap and map another file", shared_file, act_unmap_and_map, OTHER },
	{ "mremap away", shared_file, act_mremap_away, FAULTED },
	{ "mremap another file to it", shared_file, act_mremap_here, OTHER },
	{ "mprotect", shared_file, act_protect, FAULTED },
	{ "mprotect and store", read_only_private_file, act_protect_and_store, NEW },
	{ "store to a private mapping", private_file, act_store, NEW },
	{ "fork and store", private_file, act_fork_and_store, NEW },
	{ "poke into read-only memory", read_only_private_file, act_poke, NEW },
	{ "swap in to store", anonymous, act_swap_in_to_store, NEW },
	{ "swap in to read, then store", anonymous, act_swap_in_and_store, NEW },
	{ "poke into swapped memory", anonymous, act_poke, NEW },
	{ "MADV_DONTNEED of swapped memory", anonymous, act_dontneed, 0 },
	{ "UFFDIO_MOVE of a swapped page", anonymous, act_move, 0 },
};

static void try_litmus(const struct litmus *test)
{
	int *at = test->set_up();
	int value;

	start_reader(at);
	if (!make_stale(at)) {
		not_stale(test->name);
	} else {
		test->act(at);
		value = read_now();
		if (value == OLD)
			ksft_print_msg("%s: STALE\n", test->name);
		else if (value != test->expected)
			ksft_print_msg("%s: read 0x%x\n", test->name, value);
		ksft_test_result(value == test->expected, "%s\n", test->name);
	}
	stop_reader();
	end_sharer();
	close(file);
	munmap(at, PAGE);
}

/* What must not be unmapped lazily */

static void *shmem(void)
{
	return reclaimable(mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

static void *memfd(void)
{
	int fd = memfd_create("luf", 0);

	must(fd >= 0 && !ftruncate(fd, PAGE), "memfd");
	return reclaimable(mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
}

static void *sysv(void)
{
	int id = shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
	void *at = shmat(id, NULL, 0);

	shmctl(id, IPC_RMID, NULL);
	return reclaimable(at);
}

static int writer = -1;

static void *written_file(void)
{
	void *at = map(PROT_READ, MAP_SHARED);

	writer = open(names[0], O_RDWR);
	must(writer >= 0, names[0]);
	return at;
}

static void *lazily_freed(void)
{
	int *at = anonymous_page();

	*at = OLD;
	must(!madvise(at, PAGE, MADV_FREE), "MADV_FREE");
	return at;
}

/* The reader may not read it without a fault once nothing maps it. */
static void try_refusal(const char *name, void *(*set_up)(void))
{
	int *at = set_up();
	bool gone = false, stale = false;

	if (set_up != written_file && set_up != lazily_freed)
		*at = OLD;
	start_reader(at);
	for (int i = 0; i < TRIES && !gone; i++) {
		long faults;

		read_now();
		faults = get(reader.faults);
		reclaim_all();
		if (is_mapped(at))
			continue;
		read_now();
		gone = true;
		stale = get(reader.faults) == faults && !is_mapped(at);
	}
	/* Where it was mapped again at once the reader has had its fault. */
	ksft_test_result(!stale, "%s is not unmapped lazily\n", name);
	stop_reader();
	close(writer);
	writer = -1;
	munmap(at, PAGE);
}

/* The switch */

static void test_switch(void)
{
	bool right = true;

	for (int i = 0; i < 2000 && right; i++) {
		right = write_text(LUF "enabled", i & 1 ? "1" : "0");
		if (i % 16 == 0)
			reclaim_all();
	}
	ksft_test_result(right && write_text(LUF "enabled", "1"), "switched 2,000 times\n");
}

static void test_nonsense(void)
{
	static const struct {
		const char *file, *text;
	} wrong[] = {
		{ "enabled", "perhaps" }, { "enabled", "" },
		{ "pool_max_pages", "-1" }, { "pool_max_pages", "1x" },
		{ "pool_max_pages", "99999999999999" },
		{ "direct_batch_pages", "many" }, { "direct_batch_pages", "99999999999999" },
		{ "max_age_ms", "0" }, { "max_age_ms", "-5" },
		{ "drain", "0" }, { "drain", "soon" },
	};
	char path[128];
	bool right = true;

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		int fd;

		snprintf(path, sizeof(path), LUF "%s", wrong[i].file);
		fd = open(path, O_WRONLY);
		errno = 0;
		if (*wrong[i].text &&
		    (write(fd, wrong[i].text, strlen(wrong[i].text)) >= 0 ||
		     (errno != EINVAL && errno != ERANGE))) {
			ksft_print_msg("%s takes \"%s\"\n", wrong[i].file, wrong[i].text);
			right = false;
		}
		close(fd);
	}
	ksft_test_result(right, "nonsense is refused\n");
}

static void test_drain(void)
{
	int *at = shared_file();
	long flushes;
	int value;

	start_reader(at);
	if (!make_stale(at)) {
		not_stale("drain");
	} else {
		flushes = count("flushes_drain");
		must(write_text(LUF "drain", "1"), "drain");
		/* Whoever has forgotten the page has to fault. */
		value = read_now();
		ksft_test_result(count("flushes_drain") > flushes && value == OLD &&
				 is_mapped(at), "drain\n");
	}
	stop_reader();
	munmap(at, PAGE);
}

static bool has_swap(void)
{
	char text[512] = "";
	int fd = open("/proc/swaps", O_RDONLY);
	ssize_t length = read(fd, text, sizeof(text) - 1);

	close(fd);
	return length > 0 && strchr(text, '\n')[1];
}

int main(void)
{
	const char *folder = getenv("TOLLFREE_TEST_DIR");
	struct sigaction action = { .sa_handler = on_no_access };
	struct statfs about;

	ksft_print_header();
	if (access(LUF, F_OK))
		ksft_exit_skip("no " LUF ": a kernel without CONFIG_LUF\n");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		ksft_exit_skip("one CPU: nothing is unmapped lazily\n");
	if (chdir(folder ? folder : "/data") || statfs(".", &about))
		ksft_exit_skip("%s: %s\n", folder ? folder : "/data", strerror(errno));
	if (about.f_type != EXT4_SUPER_MAGIC && about.f_type != XFS_SUPER_MAGIC &&
	    about.f_type != BTRFS_SUPER_MAGIC)
		ksft_exit_skip("%s is not on ext4, xfs or btrfs\n", folder ? folder : "/data");
	if (!has_swap())
		ksft_exit_skip("no swap\n");
	enter_group();
	/* Only the page of a test is to be reclaimed. */
	must(!mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT), "mlockall");
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	pin(0);
	must(write_text(LUF "enabled", "1"), LUF "enabled");
	ksft_set_plan(ARRAY_SIZE(litmuses) + 8);

	for (size_t i = 0; i < ARRAY_SIZE(litmuses); i++)
		try_litmus(&litmuses[i]);
	try_refusal("shared anonymous memory", shmem);
	try_refusal("a memfd", memfd);
	try_refusal("System V shared memory", sysv);
	try_refusal("a file with a writer", written_file);
	try_refusal("lazily freed memory", lazily_freed);
	test_drain();
	test_nonsense();
	test_switch();

	ksft_finished();
}
