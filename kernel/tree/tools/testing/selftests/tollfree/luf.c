// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lazy unmap flush: litmus tests of coherence.
 *
 * A reader spins on one CPU and holds a translation. The page is reclaimed. The
 * translation is stale if the reader still reads the old value without a fault while
 * the page table has no entry. Then a task does an operation that must not leave the
 * old value readable, and after that the reader must not see it again.
 *
 * Needs root, cgroups, two CPUs, swap, and a directory on ext4, xfs or btrfs:
 * $TOLLFREE_TEST_DIR, /data if that is not set.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
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
#include <sys/ptrace.h>
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
#define FIXED		"an emulator that may run old code for ever"
#define KSM		"/sys/kernel/mm/ksm/"
#define UPROBES		"/sys/bus/event_source/devices/uprobe/"
/* Exists in the lab's kernels with a file system that leases blocks to remote clients. */
#define LAYOUT		"/sys/kernel/debug/toll_lab_layout"

#ifndef FICLONE
#define FICLONE		_IOW(0x94, 9, int)
#endif

#ifndef UFFDIO_MOVE
/* Newer than the headers of many systems. */
struct uffdio_move {
	__u64 dst;
	__u64 src;
	__u64 len;
	__u64 mode;
	__s64 move;
};

#define UFFD_FEATURE_MOVE	0x10000
#define UFFDIO_MOVE		_IOWR(UFFDIO, 0x05, struct uffdio_move)
#endif

enum { OLD = 0x01d01d01, NEW = 0x0eee0eee, OTHER = 0x07e47e47, FAULTED = -1 };

/* First word of code that returns a value; the same with a breakpoint. */
#define CODE_OF(value)	((int)((unsigned int)(value) << 8 | 0xb8))
#define PROBED		((int)((unsigned int)OLD << 8 | 0xcc))

/* The reader */

static struct {
	pthread_t thread;
	const int *at;
	bool runs;	/* it calls what is there, and does not read it */
	int old;	/* what it saw at first */
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

static long memory_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_minflt + usage.ru_majflt;
}

static int look(void)
{
	return reader.runs ? ((int (*)(void))reader.at)() : get(*reader.at);
}

static void *read_on(void *unused)
{
	stay_on(1);
	while (!get(reader.stop)) {
		if (sigsetjmp(no_access, 1))
			set(reader.value, FAULTED);
		else
			for (int i = 0; i < 100; i++)
				set(reader.value, look());
		set(reader.faults, memory_faults());
		__atomic_add_fetch(&reader.rounds, 1, __ATOMIC_SEQ_CST);
	}
	return unused;
}

/* Set the address that the reader reads from now on. */
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
	reader.old = read_now();
}

static void stop_reader(void)
{
	set(reader.stop, true);
	pthread_join(reader.thread, NULL);
	reader.runs = false;
}

/* Environment */

static int pagemap = -1;

static bool is_mapped(const void *at)
{
	uint64_t entry = 0;

	if (pagemap < 0)
		pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pread(pagemap, &entry, sizeof(entry), (uintptr_t)at / PAGE * sizeof(entry)) !=
	    sizeof(entry))
		ksft_exit_fail_msg("pagemap: %s\n", strerror(errno));
	return entry >> 63;
}

static void reclaim_all(void)
{
	/* Fails if less can be reclaimed. */
	write_text(GROUP "/test/memory.reclaim", "64M");
}

/*
 * With page-table isolation each interrupt switches to the kernel's tables.
 * A CPU without PCIDs drops all translations there, and none is ever
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

static int tries(void)
{
	return isolates_tables() ? TRIES / 10 : TRIES;
}

/* For such a small cgroup the kernel uses counters that are updated every 2 s. */
static void wait_a_bit(void)
{
	usleep(100000);
}

/* Content of the file instead of OLD. */
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

/*
 * Trigger unrelated flushes now, and not while a test has its
 * stale translation: the first store to a page after fork, and a
 * change of a mapping after an eager unmap, even long ago.
 */
static void settle(void)
{
	static void *page;

	aligned_page();
	if (!page)
		page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0);
	set(*(int *)page, 0);
	mprotect(page, PAGE, PROT_READ);
	mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

/* Reclaim the page. Return: true once the reader reads it although nothing maps it. */
static bool make_stale(const void *at)
{
	long before = deferred(), faults = 0;
	int value = reader.old, unmapped = 0, most = tries();

	settle();
	for (int i = 0; i < most; i++) {
		read_now();
		faults = get(reader.faults);
		reclaim_all();
		if (is_mapped(at)) {
			wait_a_bit();
			continue;
		}
		unmapped++;
		value = read_now();
		if (value == reader.old && get(reader.faults) == faults && !is_mapped(at) &&
		    deferred() > before)
			return true;
	}
	ksft_print_msg("unmapped %d times of %d, %ld pages lazily; read 0x%x, %ld faults\n",
		       unmapped, most, deferred() - before, value,
		       get(reader.faults) - faults);
	return false;
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
	/* Return: address with OLD for the reader; NULL, and the reason, if not possible. */
	int *(*set_up)(void);
	/* Operation after which OLD must not be read any more. */
	void (*act)(int *at);
	/* Result of later reads: a value, or FAULTED. */
	int expected;
};

static int file = -1;	/* for reading */
static int kept = -1;	/* what must stay open until the reader has looked again */
static int *elsewhere;	/* what must stay mapped as long: to unmap flushes */
static const char *lacking;	/* what the kernel or the file system has not */
static const char *const names[] = { "luf-a", "luf-b" };

static void make_file(const char *name, const void *content, size_t size)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, content, size) != (ssize_t)size || fsync(fd))
		ksft_exit_fail_msg("%s: %s\n", name, strerror(errno));
	close(fd);
}

static void fill(const char *name, int value, size_t size)
{
	int words[PAGE / sizeof(int)];

	for (size_t i = 0; i < PAGE / sizeof(int); i++)
		words[i] = value;
	make_file(name, words, size);
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

static void *lacks(const char *what)
{
	lacking = what;
	return NULL;
}

/* The reader reads beyond the end of the file. */
static int *short_file(void)
{
	int *at = map(PROT_READ, MAP_SHARED);

	int fd = open(names[0], O_RDWR);

	/* The rest of the last page is dirty, and dirty pages are not unmapped lazily. */
	must(fd >= 0 && !ftruncate(fd, PAGE - sizeof(int)) && !fsync(fd),
	     "truncate");
	close(fd);
	return at + PAGE / sizeof(int) - 1;
}

static int clone_other_file(void)
{
	int from = open(names[1], O_RDONLY), to = open(names[0], O_RDWR);
	int error = ioctl(to, FICLONE, from) ? errno : 0;

	close(from);
	close(to);
	return error;
}

/* On file systems where a file can share the blocks of another one. */
static int *clonable_file(void)
{
	int *at = shared_file();

	if (clone_other_file() == EOPNOTSUPP) {
		munmap(at, PAGE);
		close(file);
		return lacks("this file system clones no files");
	}
	fill(names[0], OLD, PAGE);
	return at;
}

/* A function that returns the value. */
static void write_code(void *to, int value)
{
	unsigned char *code = to;

	code[0] = 0xb8;	/* mov $value, %eax */
	memcpy(code + 1, &value, sizeof(value));
	code[5] = 0xc3;	/* ret */
}

static int *text(void)
{
	unsigned char code[PAGE] = "";

	write_code(code, OLD);
	make_file(names[0], code, PAGE);
	file = open(names[0], O_RDONLY | O_CLOEXEC);
	return reclaimable(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0));
}

static int *text_to_probe(void)
{
	if (access(UPROBES, F_OK))
		return lacks("a kernel without CONFIG_UPROBE_EVENTS");
	return text();
}

/* An overlay with a file only in the lower directory, which may be copied up. */
#define LAYERS		"lowerdir=lower,upperdir=upper,workdir=work"
#define OVERLAID	"merged/file"

static bool has_overlay;

static int *overlaid_file(bool is_copied_up)
{
	static const char *const dirs[] = { "lower", "upper", "work", "merged" };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		mkdir(dirs[i], 0755);
	unlink("upper/file");
	fill("lower/file", OLD, PAGE);
	if (mount("luf", "merged", "overlay", 0, LAYERS)) {
		must(errno == ENODEV, "overlay");
		return lacks("a kernel without overlayfs");
	}
	has_overlay = true;
	if (is_copied_up)
		close(open(OVERLAID, O_RDWR));
	file = open(OVERLAID, O_RDONLY | O_CLOEXEC);
	return reclaimable(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, file, 0));
}

static int *lower_file(void)
{
	return overlaid_file(false);
}

static int *upper_file(void)
{
	return overlaid_file(true);
}

static void end_overlay(void)
{
	if (has_overlay)
		must(!umount("merged"), "umount");
	has_overlay = false;
}

/* A write() of one word copies up the rest. */
static void act_copy_up(int *at)
{
	int fd = open(OVERLAID, O_RDWR), words[2] = { NEW, 0 };

	must(fd >= 0 && pwrite(fd, words, sizeof(*words), 0) == sizeof(*words), "copy up");
	must(pread(fd, words, sizeof(words), 0) == sizeof(words), "pread");
	if (words[0] != NEW || words[1] != OLD)
		ksft_print_msg("copied up: 0x%x, 0x%x\n", words[0], words[1]);
	else
		must(mmap(at, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0) == at, "mmap");
	close(fd);
}

static void act_write_overlaid(int *at)
{
	int fd = open(OVERLAID, O_RDWR);

	must(fd >= 0 && pwrite(fd, aligned_page(), PAGE, 0) == PAGE, "pwrite");
	close(fd);
}

static void act_truncate_overlaid(int *at)
{
	must(!truncate(OVERLAID, 0), "truncate");
}

/* A file with blocks that a remote client can write. */
static int *remote_file(void)
{
	struct statfs about;

	if (access(LAYOUT, F_OK))
		return lacks("a kernel that gives blocks to no remote client");
	must(!statfs(".", &about), "statfs");
	if (about.f_type != XFS_SUPER_MAGIC)
		return lacks("a file system that gives its blocks to no remote client");
	/* A file that ever shared blocks is not leased. */
	unlink(names[0]);
	return shared_file();
}

static void act_write_remotely(int *at)
{
	char text[64];

	snprintf(text, sizeof(text), "%d %s", NEW, names[0]);
	must(write_text(LAYOUT, text), LAYOUT);
	/* Its pages are never unmapped lazily again: later tests need another inode. */
	unlink(names[0]);
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

static void act_append(int *at)
{
	int fd = open(names[0], O_WRONLY | O_APPEND);

	must(write(fd, aligned_page(), sizeof(int)) == sizeof(int), "write");
	close(fd);
}

static void act_write_twice(int *at)
{
	int first = open(names[0], O_WRONLY);

	write_with(0);
	close(first);
}

/*
 * Three concurrent writers, each on its own CPU if there are four. They exist before
 * the page is unmapped: creating a thread changes mappings, which flushes.
 */
static struct {
	pthread_t threads[3];
	int waiting;
	bool begin;
	bool wrong;
} writers;

static void *write_as_one_of_many(void *cpu)
{
	stay_on((intptr_t)cpu < sysconf(_SC_NPROCESSORS_ONLN) ? (intptr_t)cpu : 0);
	__atomic_add_fetch(&writers.waiting, 1, __ATOMIC_SEQ_CST);
	while (!get(writers.begin))
		sched_yield();
	write_with(0);
	/* A writer that is done does not depend on the others. */
	if (read_now() == OLD)
		set(writers.wrong, true);
	return NULL;
}

static int *file_of_three_writers(void)
{
	static const intptr_t cpus[] = { 0, 2, 3 };

	set(writers.begin, false);
	for (int i = 0; i < 3; i++)
		must(!pthread_create(&writers.threads[i], NULL, write_as_one_of_many,
				     (void *)cpus[i]), "no thread");
	while (get(writers.waiting) < 3)
		sched_yield();
	return shared_file();
}

static void end_writers(void)
{
	if (!writers.waiting)
		return;
	set(writers.begin, true);
	for (int i = 0; i < 3; i++)
		pthread_join(writers.threads[i], NULL);
	writers.waiting = 0;
}

static void act_three_writers(int *at)
{
	end_writers();
	if (writers.wrong)
		ksft_print_msg("one of three writers was done too early\n");
}

static void act_write_shared(int *at)
{
	int fd = open(names[0], O_RDWR);

	elsewhere = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(elsewhere != MAP_FAILED, "mmap");
	new_page(elsewhere);
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

static void act_clone(int *at)
{
	must(!clone_other_file(), "FICLONE");
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

/* To an unmapped address: unmapping there flushes, too. */
static void *away_from(void *at)
{
	return (char *)at + (1UL << 30);
}

static void act_mremap_away(int *at)
{
	must(mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, away_from(at)) != MAP_FAILED,
	     "mremap");
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

/* Without a process ID the breakpoint is set in all processes that map the file. */
static void act_probe(int *at)
{
	struct perf_event_attr attr = {
		.type = number(UPROBES "type"),
		.size = sizeof(attr),
		.uprobe_path = (uintptr_t)names[0],
	};

	kept = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	must(kept >= 0, "uprobe");
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

/* Anonymous memory: clean and read-only after swap-in and fork. */

static pid_t sharer;

static bool is_swapped(const void *at)
{
	return !is_mapped(at);
}

static void swap_out(void *at)
{
	for (int i = 0; i < TRIES && !is_swapped(at); i++) {
		must(!madvise(at, PAGE, MADV_PAGEOUT), "MADV_PAGEOUT");
		if (is_swapped(at))
			break;
		/* The page may still be in a per-CPU batch of the LRU lists. */
		reclaim_all();
		wait_a_bit();
	}
	must(is_swapped(at), "the page was not swapped out");
}

static void *anonymous_page(void)
{
	return reclaimable(mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void old_page(int *words)
{
	for (size_t i = 0; i < PAGE / sizeof(int); i++)
		words[i] = OLD;
}

static int *anonymous(void)
{
	int *at = anonymous_page();

	old_page(at);
	/* Swapped out and in: clean. */
	swap_out(at);
	get(*at);
	/* Shared: read-only. */
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

/* A write fault sets the entry. */
static void act_swap_in_to_store(int *at)
{
	end_sharer();
	new_page(at);
}

/* A read fault sets the entry, which is writable. */
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

static void act_free(int *at)
{
	must(!madvise(at, PAGE, MADV_FREE), "MADV_FREE");
}

/* After another swap-in it is read-only, because it is shared: unmap lazily again. */
static void act_pageout_and_store(int *at)
{
	get(*at);
	swap_out(at);
	end_sharer();
	new_page(at);
}

/* A debugger writes by force while its target is stopped. */
static bool poke_parent(void *at)
{
	pid_t parent = getppid();
	long code = 0;

	write_code(&code, NEW);
	return !ptrace(PTRACE_SEIZE, parent, 0, 0) && !ptrace(PTRACE_INTERRUPT, parent, 0, 0) &&
	       waitpid(parent, NULL, __WALL) == parent &&
	       !ptrace(PTRACE_POKETEXT, parent, at, code) &&
	       !ptrace(PTRACE_DETACH, parent, 0, 0);
}

static int to_tracer[2];

/* The tracer starts before the page is unmapped: fork flushes. */
static int *traced_text(void)
{
	int *at = text();
	char word;

	must(!pipe2(to_tracer, O_CLOEXEC), "pipe");
	sharer = fork();
	if (!sharer)
		_exit(read(to_tracer[0], &word, 1) != 1 || !poke_parent(at));
	return at;
}

static int *traced_text_that_runs(void)
{
	if (code_is_fixed())
		return lacks(FIXED);
	reader.runs = true;
	return traced_text();
}

static int ended(pid_t child)
{
	int status;

	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void act_trace(int *at)
{
	must(write(to_tracer[1], "", 1) == 1 && !ended(sharer), "ptrace");
	sharer = 0;
	close(to_tracer[0]);
	close(to_tracer[1]);
}

static bool userfaultfd_has(__u64 feature)
{
	__u64 features = 0;
	int fd = userfaultfd(&features);

	if (fd >= 0)
		close(fd);
	return features & feature;
}

static void watch(void *at, int mode)
{
	struct uffdio_register target = {
		.range = { .start = (uintptr_t)at, .len = PAGE },
		.mode = mode,
	};
	__u64 features;

	if (kept < 0)
		kept = userfaultfd(&features);
	must(kept >= 0 && !ioctl(kept, UFFDIO_REGISTER, &target), "userfaultfd");
}

static void write_protect(void *at, __u64 mode)
{
	struct uffdio_writeprotect protect = {
		.range = { .start = (uintptr_t)at, .len = PAGE },
		.mode = mode,
	};

	must(!ioctl(kept, UFFDIO_WRITEPROTECT, &protect), "UFFDIO_WRITEPROTECT");
}

static int *protectable(void)
{
	if (!userfaultfd_has(UFFD_FEATURE_PAGEFAULT_FLAG_WP))
		return lacks("a userfaultfd that protects nothing");
	return anonymous();
}

/* Only exclusive pages can be moved; they are read-only because they are protected. */
static int *movable(void)
{
	int *at;

	if (!userfaultfd_has(UFFD_FEATURE_PAGEFAULT_FLAG_WP) ||
	    !userfaultfd_has(UFFD_FEATURE_MOVE))
		return lacks("a userfaultfd that moves nothing");
	at = anonymous_page();
	old_page(at);
	swap_out(at);
	get(*at);
	watch(at, UFFDIO_REGISTER_MODE_WP);
	write_protect(at, UFFDIO_WRITEPROTECT_MODE_WP);
	return at;
}

static void act_copy(int *at)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)at, .src = (uintptr_t)aligned_page(), .len = PAGE,
	};

	watch(at, UFFDIO_REGISTER_MODE_MISSING);
	act_dontneed(at);
	must(!ioctl(kept, UFFDIO_COPY, &copy), "UFFDIO_COPY");
}

static void act_watch_and_store(int *at)
{
	end_sharer();
	watch(at, UFFDIO_REGISTER_MODE_WP);
	write_protect(at, UFFDIO_WRITEPROTECT_MODE_WP);
	write_protect(at, 0);
	new_page(at);
}

static void act_move(int *at)
{
	int *there = anonymous_page();
	struct uffdio_move move = {
		.dst = (uintptr_t)there, .src = (uintptr_t)at, .len = PAGE,
	};

	/* Linux leaves the moved entry protected. */
	watch(there, UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP);
	must(!ioctl(kept, UFFDIO_MOVE, &move), "UFFDIO_MOVE");
	must(get(*there) == OLD, "what was moved is lost");
}

/* KSM merges two pages with the same content. */

static void *twin;

static void merge(int *at)
{
	twin = anonymous_page();
	old_page(twin);
	must(!madvise(at, PAGE, MADV_MERGEABLE) && !madvise(twin, PAGE, MADV_MERGEABLE),
	     "MADV_MERGEABLE");
	must(write_text(KSM "run", "1"), KSM);
	for (int i = 0; i < 100 && number("/proc/self/ksm_merging_pages") < 2; i++)
		usleep(50000);
	must(number("/proc/self/ksm_merging_pages") == 2, "KSM merges nothing");
	must(write_text(KSM "run", "0"), KSM);
}

static void end_twin(void)
{
	if (!twin)
		return;
	write_text(KSM "run", "2");
	write_text(KSM "run", "0");
	munmap(twin, PAGE);
	twin = NULL;
}

static int *mergeable(void)
{
	return access(KSM, F_OK) ? lacks("a kernel without CONFIG_KSM") : anonymous();
}

/* After swap-in it is read-only, because it is shared, and no flush precedes KSM. */
static void act_merge_and_store(int *at)
{
	get(*at);
	merge(at);
	end_sharer();
	new_page(at);
}

static const struct litmus litmuses[] = {
	{ "write", shared_file, act_write, NEW },
	{ "write past the page cache", shared_file, act_write_direct, NEW },
	{ "write with O_APPEND", short_file, act_append, NEW },
	{ "write by a second writer", shared_file, act_write_twice, NEW },
	{ "write by three at a time", file_of_three_writers, act_three_writers, NEW },
	{ "write through a shared mapping", shared_file, act_write_shared, NEW },
	{ "truncate", shared_file, act_truncate, FAULTED },
	{ "truncate and grow", shared_file, act_truncate_and_grow, 0 },
	{ "open with O_TRUNC and grow", shared_file, act_open_truncating, 0 },
	{ "punch a hole", shared_file, act_punch_hole, 0 },
	{ "zero a range", shared_file, act_zero_range, 0 },
	{ "copy_file_range", shared_file, act_copy_file_range, OTHER },
	{ "clone another file", clonable_file, act_clone, OTHER },
	{ "sendfile", shared_file, act_sendfile, OTHER },
	{ "copy up in an overlay and write", lower_file, act_copy_up, NEW },
	{ "write to a file of an overlay", upper_file, act_write_overlaid, NEW },
	{ "truncate a file of an overlay", upper_file, act_truncate_overlaid, FAULTED },
	{ "write by a remote client", remote_file, act_write_remotely, NEW },
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
	{ "poke by ptrace into text", traced_text, act_trace, CODE_OF(NEW) },
	{ "poke by ptrace into text that runs", traced_text_that_runs, act_trace, NEW },
	{ "place a uprobe", text_to_probe, act_probe, PROBED },
	{ "swap in to store", anonymous, act_swap_in_to_store, NEW },
	{ "swap in to read, then store", anonymous, act_swap_in_and_store, NEW },
	{ "fork and store to swapped memory", anonymous, act_fork_and_store, NEW },
	{ "poke into swapped memory", anonymous, act_poke, NEW },
	{ "map anonymous memory over swapped memory", anonymous, act_map_fixed, 0 },
	{ "munmap swapped memory", anonymous, act_unmap, FAULTED },
	{ "mremap swapped memory away", anonymous, act_mremap_away, FAULTED },
	{ "mprotect of swapped memory", anonymous, act_protect, FAULTED },
	{ "MADV_DONTNEED of swapped memory", anonymous, act_dontneed, 0 },
	{ "MADV_FREE of swapped memory", anonymous, act_free, 0 },
	{ "MADV_PAGEOUT once more, then store", anonymous, act_pageout_and_store, NEW },
	{ "UFFDIO_COPY in place of a swapped page", protectable, act_copy, NEW },
	{ "UFFDIO_WRITEPROTECT of a swapped page", protectable, act_watch_and_store, NEW },
	{ "UFFDIO_MOVE of a swapped page", movable, act_move, 0 },
	{ "merge by KSM, then store", mergeable, act_merge_and_store, NEW },
};

/* Cleanup after each test. */
static void clean_up(int *at)
{
	end_writers();
	stop_reader();
	end_sharer();
	end_twin();
	writers.wrong = false;
	if (kept >= 0)
		close(kept);
	kept = -1;
	if (file >= 0)
		close(file);
	file = -1;
	if (elsewhere)
		munmap(elsewhere, PAGE);
	elsewhere = NULL;
	at = (int *)((uintptr_t)at & -PAGE);
	munmap(at, PAGE);
	munmap(away_from(at), PAGE);
	end_overlay();
}

static void try_litmus(const struct litmus *test)
{
	int *at = test->set_up();
	int value;

	if (!at) {
		ksft_test_result_skip("%s: %s\n", test->name, lacking);
		return;
	}
	start_reader(at);
	if (!make_stale(at)) {
		not_stale(test->name);
	} else {
		test->act(at);
		value = read_now();
		if (value == reader.old)
			ksft_print_msg("%s: STALE\n", test->name);
		else if (value != test->expected)
			ksft_print_msg("%s: read 0x%x\n", test->name, value);
		ksft_test_result(value == test->expected && value != reader.old &&
				 !writers.wrong, "%s\n", test->name);
	}
	clean_up(at);
}

/*
 * The whole address space is replaced: another file is mapped at the address then, on the
 * same CPU.
 */

static void *const place = (void *)0x200000000000;

static void become_another(void)
{
	execl("/proc/self/exe", "luf", "look", NULL);
	_exit(KSFT_FAIL);
}

/* The other program. */
static int look_again(void)
{
	int other = open(names[1], O_RDONLY);
	int *at = mmap(place, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, other, 0);

	stay_on(1);
	return at == place && *at == OTHER ? KSFT_PASS : KSFT_FAIL;
}

static void leave(void)
{
	_exit(KSFT_PASS);
}

static void lock_memory(void)
{
	/* Reclaim only the page of the test. */
	must(!mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT), "mlockall");
}

/* A child holds the stale translation. */
static void hold(void (*go)(void))
{
	lock_memory();
	close(pagemap);
	pagemap = -1;
	file = open(names[0], O_RDONLY | O_CLOEXEC);
	start_reader(reclaimable(mmap(place, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE,
				      file, 0)));
	if (!make_stale(place))
		_exit(KSFT_SKIP);
	go();
}

static pid_t start(void (*actor)(void (*)(void)), void (*go)(void))
{
	pid_t child = fork();

	if (!child) {
		actor(go);
		_exit(KSFT_FAIL);
	}
	return child;
}

static void go_at_once(void (*go)(void))
{
	go();
}

static void try_going(const char *name, void (*go)(void))
{
	int status;

	fill(names[0], OLD, PAGE);
	fill(names[1], OTHER, PAGE);
	status = ended(start(hold, go));
	if (status == KSFT_SKIP) {
		not_stale(name);
		return;
	}
	if (!status && go == leave)
		status = ended(start(go_at_once, become_another));
	ksft_test_result(!status, "%s\n", name);
}

/* What must not be unmapped lazily */

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
	int *at;

	if (access(KSM, F_OK))
		return lacks("a kernel without CONFIG_KSM");
	at = written_memory();
	merge(at);
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
	bool right;

	if (!at) {
		ksft_test_result_skip("%s: %s\n", test->name, lacking);
		return;
	}
	start_reader(at);
	right = is_refused(at, test->reason);
	if (elsewhere) {
		new_page(elsewhere);
		right &= read_now() == NEW;
	}
	ksft_test_result(right, "%s is not unmapped lazily\n", test->name);
	clean_up(at);
}

/* The switch */

/* Number of pages that were added to a pool and not released. */
static long lost(void)
{
	static const char *const paths[] = {
		"kswapd", "direct", "demotion", "promotion", "compaction",
	};
	long pages = -count("released_flushed") - count("released_elided");

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		char name[32];

		snprintf(name, sizeof(name), "deferred_%s", paths[i]);
		pages += count(name);
	}
	return pages;
}

enum { MANY = 512 };

/* Load while LUF is switched on and off. */
static struct {
	const int *at;
	long reads;
	long wrong;
	bool stop;
} *load;

static void *read_many(void *unused)
{
	stay_on(1);
	for (size_t i = 0; !get(load->stop); i = (i + 1) % MANY) {
		if (get(load->at[i * PAGE / sizeof(int)]) != (int)i)
			load->wrong++;
		load->reads++;
	}
	return unused;
}

/* One task reads a file all the time, another one with the same mm reclaims it. */
static void read_and_reclaim(void)
{
	pthread_t thread;

	load->at = mmap(NULL, MANY * PAGE, PROT_READ, MAP_SHARED, file, 0);
	must(load->at != MAP_FAILED && !pthread_create(&thread, NULL, read_many, NULL), "load");
	stay_on(sysconf(_SC_NPROCESSORS_ONLN) - 1);
	while (!get(load->stop)) {
		write_text(GROUP "/test/memory.reclaim", "1M");
		usleep(1000);
	}
	pthread_join(thread, NULL);
	_exit(KSFT_PASS);
}

static void make_many(void)
{
	int *pages = calloc(MANY, PAGE);

	for (int i = 0; i < MANY; i++)
		pages[i * PAGE / sizeof(int)] = i;
	make_file(names[0], pages, MANY * PAGE);
	free(pages);
	file = open(names[0], O_RDONLY | O_CLOEXEC);
	load = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(load != MAP_FAILED, "mmap");
}

/* While LUF is off no page waits. */
static bool switch_often(int times, bool reclaims)
{
	bool right = true;

	for (int i = 0; i < times / 2 && right; i++) {
		right = write_text(LUF "enabled", "0") && !number(LUF "pool_pages") &&
			write_text(LUF "enabled", "1");
		if (reclaims && i % 16 == 0)
			reclaim_all();
	}
	return right;
}

static void test_switch(void)
{
	ksft_test_result(switch_often(2000, true), "switched 2,000 times\n");
}

static void test_switch_under_load(void)
{
	long before = deferred();
	bool right;
	pid_t child;

	if (code_is_fixed()) {
		ksft_test_result_skip("switched 10,000 times under load: " FIXED "\n");
		return;
	}
	make_many();
	child = start(go_at_once, read_and_reclaim);
	right = switch_often(10000, false);
	set(load->stop, true);
	right &= !ended(child) && write_text(LUF "drain", "1");
	ksft_print_msg("%ld pages unmapped lazily, %ld lost; %ld reads, %ld wrong\n",
		       deferred() - before, lost(), load->reads, load->wrong);
	ksft_test_result(right && deferred() > before && !lost() && !load->wrong &&
			 !number(LUF "pool_pages"), "switched 10,000 times under load\n");
	munmap(load, PAGE);
	close(file);
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
		/* A CPU without a translation has to fault. */
		value = read_now();
		ksft_test_result(count("flushes_drain") > flushes && value == OLD &&
				 is_mapped(at), "drain\n");
	}
	clean_up(at);
}

static bool has_swap(void)
{
	char text[512] = "";
	int fd = open("/proc/swaps", O_RDONLY);
	ssize_t length = read(fd, text, sizeof(text) - 1);

	close(fd);
	return length > 0 && strchr(text, '\n')[1];
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_no_access };
	struct statfs about;

	if (argc > 1 && !strcmp(argv[1], "look"))
		return look_again();
	ksft_print_header();
	begin_luf_test();
	must(!statfs(".", &about), "statfs");
	if (about.f_type != EXT4_SUPER_MAGIC && about.f_type != XFS_SUPER_MAGIC &&
	    about.f_type != BTRFS_SUPER_MAGIC)
		ksft_exit_skip("the files are not on ext4, xfs or btrfs\n");
	if (!has_swap())
		ksft_exit_skip("no swap\n");
	lock_memory();
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
	stay_on(0);
	must(write_text(LUF "enabled", "1"), LUF "enabled");
	ksft_set_plan(ARRAY_SIZE(litmuses) + ARRAY_SIZE(refusals) + 6);

	for (size_t i = 0; i < ARRAY_SIZE(litmuses); i++)
		try_litmus(&litmuses[i]);
	try_going("exit", leave);
	try_going("exec", become_another);
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		try_refusal(&refusals[i]);
	test_drain();
	test_nonsense();
	test_switch();
	test_switch_under_load();

	ksft_finished();
}
