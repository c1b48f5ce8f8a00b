// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lazy unmap flush under stress: everything at once, for some seconds (the first
 * argument, 10 if there is none). Memory is filled, and pages are poisoned, only
 * in runs of a minute or more: others would see little else.
 *
 * Each page contains its index and the number of its writes. A writer publishes that
 * number afterwards; a reader that has seen the number must not read an older page,
 * through any translation. Meanwhile memory is reclaimed and
 * compacted, filled by processes until it is short or the OOM killer comes,
 * mappings change, pages are poisoned, blocks of memory go offline, and LUF
 * itself is drained, resized and switched. In the end each page that was put
 * into a pool has left it.
 *
 * Needs what the litmus tests need (luf.c).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "luf_test.h"
#include "stress.h"

#define NAME	"luf-stress"

/* Missing in some C libraries. */
#ifndef MADV_SOFT_OFFLINE
#define MADV_SOFT_OFFLINE	101
#endif

enum { PAGES = 2048, WORDS = PAGE / sizeof(uint64_t), LEFT_KIB = 256 << 10, VICTIMS = 8 };

#define add(variable)		__atomic_add_fetch(&(variable), 1, __ATOMIC_SEQ_CST)

/* Shared by all processes. */
static struct {
	uint32_t of_file[PAGES];	/* how often a page was written, published */
	uint32_t of_memory[PAGES];
	uint64_t reads, writes, changes, reclaims, forks, hogs, killed, poisoned;
	uint64_t stale;
	bool is_long, stop;
} *shared;

/* Index of this actor. */
static int self;

/* Run on these CPUs, if they exist. */
static void pin(int first, int second)
{
	int there = sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(first % there, &cpus);
	CPU_SET(second % there, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static uint64_t content(uint32_t page, uint32_t version)
{
	return (uint64_t)page << 32 | version;
}

static void fill(uint64_t *words, uint32_t page, uint32_t version)
{
	for (size_t i = 0; i < WORDS; i++)
		set(words[i], content(page, version));
}

/* Check a word of a page against the version that was published before the read. */
static void check(const uint64_t *words, uint32_t page, uint32_t oldest)
{
	uint64_t word = get(words[any(WORDS)]);

	add(shared->reads);
	if (word >> 32 == page && (uint32_t)word >= oldest)
		return;
	add(shared->stale);
	fprintf(stderr, "page %u: read version %u of page %u, %u was published\n", page,
		(uint32_t)word, (uint32_t)(word >> 32), oldest);
}

static uint64_t *map_file(int protection, int flags)
{
	int fd = open(NAME, protection & PROT_WRITE && flags & MAP_SHARED ? O_RDWR : O_RDONLY);
	void *at = mmap(NULL, PAGES * PAGE, protection, flags, fd, 0);

	must(at != MAP_FAILED, NAME);
	close(fd);
	return at;
}

/*
 * Actors, one process each. Readers have CPUs of their own if there are
 * four, so that they keep their translations for long; the others do little at a
 * time.
 */

static void rest(void)
{
	usleep(any(2000));
}

/*
 * Read an eighth of all pages for a while: the others are reclaimed. Then
 * rest: an emulator has fewer CPUs than the guest.
 */
static uint32_t nearby(void)
{
	static uint32_t first, reads;

	if (!(++reads % 20000)) {
		first = any(PAGES);
		usleep(20000);
	}
	return (first + any(PAGES / 8)) % PAGES;
}

static void read_file(void)
{
	uint64_t *at = map_file(PROT_READ, MAP_SHARED);

	pin(self, self);
	while (!get(shared->stop)) {
		uint32_t page = nearby();
		uint32_t oldest = get(shared->of_file[page]);

		check(at + page * WORDS, page, oldest);
	}
}

/*
 * Open, write, close: in between the file has no writer. Each of the two
 * writers has every other page, so that versions only grow.
 */
static void write_file(void)
{
	uint64_t *words = aligned_alloc(PAGE, PAGE);

	while (!get(shared->stop)) {
		uint32_t page = any(PAGES / 2) * 2 + self % 2;
		uint32_t version = get(shared->of_file[page]) + 1, how = any(4);
		int fd = open(NAME, O_RDWR | (how == 1 ? O_DIRECT : 0));

		must(fd >= 0, NAME);
		fill(words, page, version);
		if (how == 2) {
			uint64_t *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
					    page * PAGE);

			must(at != MAP_FAILED, "mmap");
			fill(at, page, version);
			munmap(at, PAGE);
		} else {
			/* A hole would read as page 0, version 0. */
			must(pwrite(fd, words, PAGE, page * PAGE) == (ssize_t)PAGE, "pwrite");
		}
		set(shared->of_file[page], version);
		add(shared->writes);
		close(fd);
		usleep(any(20000));
	}
}

/* Map pages of the file over others, in every way. */
static void change_mappings(void)
{
	uint64_t *at = map_file(PROT_READ, MAP_SHARED);
	int fd = open(NAME, O_RDONLY);

	while (!get(shared->stop)) {
		uint32_t place = any(PAGES), page = any(PAGES), oldest;
		uint64_t *there = at + place * WORDS;

		check(there, place, get(shared->of_file[place]));
		oldest = get(shared->of_file[page]);
		switch (any(3)) {
		case 0:
			must(mmap(there, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd,
				  page * PAGE) == there, "mmap");
			check(there, page, oldest);
			break;
		case 1:
			must(!mprotect(there, PAGE, PROT_NONE), "mprotect");
			must(!mprotect(there, PAGE, PROT_READ), "mprotect");
			break;
		case 2:
			must(!madvise(there, PAGE, MADV_DONTNEED), "madvise");
			break;
		}
		must(mmap(there, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd,
			  place * PAGE) == there, "mmap");
		check(there, place, get(shared->of_file[place]));
		add(shared->changes);
		rest();
	}
}

static uint64_t *memory;

/* A second task of the same address space, on another CPU. */
static int read_memory(void *unused)
{
	pin(2, 2);
	while (!get(shared->stop)) {
		uint32_t page = nearby();
		uint32_t oldest = get(shared->of_memory[page]);

		check(memory + page * WORDS, page, oldest);
	}
	return 0;
}

/* Swap out and in, and share with children, which see the content at fork. */
static void write_memory(void)
{
	char *stack = aligned_alloc(PAGE, 16 * PAGE);
	int reader;

	must(stack, "stack");
	memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1, 0);
	must(memory != MAP_FAILED, "mmap");
	for (uint32_t page = 0; page < PAGES; page++)
		fill(memory + page * WORDS, page, 0);
	reader = clone(read_memory, stack + 16 * PAGE, CLONE_VM | CLONE_FS | CLONE_FILES |
		       SIGCHLD, NULL);
	must(reader > 0, "clone");
	while (!get(shared->stop)) {
		uint32_t page = any(PAGES), version = get(shared->of_memory[page]) + 1;

		if (!any(200)) {
			pid_t child = fork();

			if (!child) {
				for (int i = 0; i < 200; i++) {
					page = any(PAGES);
					check(memory + page * WORDS, page, 0);
				}
				_exit(0);
			}
			waitpid(child, NULL, 0);
			add(shared->forks);
			continue;
		}
		fill(memory + page * WORDS, page, version);
		set(shared->of_memory[page], version);
		add(shared->writes);
		rest();
	}
	waitpid(reader, NULL, 0);
}

/* Mostly waits, so that several exist; some do not use memory. */
static void reclaim_some(void)
{
	while (!get(shared->stop)) {
		char text[32];

		snprintf(text, sizeof(text), "%uK%s", 64 + any(1024),
			 self % 2 ? " swappiness=0" : "");
		write_text(GROUP "/test/memory.reclaim", text);
		add(shared->reclaims);
		usleep(any(10000));
	}
}

/* A field of /proc/meminfo, in KiB. */
static size_t kib_of(const char *name)
{
	FILE *file = fopen("/proc/meminfo", "re");
	size_t kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == ':')
			kib = strtoul(line + strlen(name) + 1, NULL, 10);
	if (file)
		fclose(file);
	must(kib, name);
	return kib;
}

/* Use more memory than is free, swappable or not. */
static void hog(bool is_locked)
{
	size_t length = (kib_of("MemFree") + any(32 << 10)) << 10;
	char *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return;
	if (is_locked)
		mlock2(at, length, MLOCK_ONFAULT);
	for (size_t i = 0; i < length && !get(shared->stop); i += PAGE)
		at[i] = 1;
}

static void offer_oneself(void)
{
	write_text("/proc/self/oom_score_adj", "1000");
}

/*
 * While a killed hog still frees its memory, the OOM killer may run again, and panics
 * if it finds no victim.
 */
static void keep_victims(void)
{
	while (!get(shared->stop)) {
		for (int i = 0; i < VICTIMS; i++) {
			if (fork())
				continue;
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			offer_oneself();
			while (!get(shared->stop))
				usleep(100000);
			_exit(0);
		}
		/* Wait until none is left. */
		for (int i = 0; i < VICTIMS; i++)
			wait(NULL);
	}
}

/* Let the OOM killer choose the hogs. */
static void fill_memory(void)
{
	while (!get(shared->stop)) {
		bool is_locked = !any(4);
		pid_t child = fork();
		int status = 0;

		if (!child) {
			offer_oneself();
			/* It has the most work, and is the least important. */
			nice(10);
			hog(is_locked);
			_exit(0);
		}
		waitpid(child, &status, 0);
		add(shared->hogs);
		if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
			add(shared->killed);
		usleep(any(500000));
	}
}

/* Offline a page of the file, or poison an anonymous page. */
static void poison_page(void)
{
	uint32_t page = any(PAGES);
	uint64_t *at;

	if (any(2)) {
		at = map_file(PROT_READ, MAP_SHARED) + page * WORDS;
		check(at, page, get(shared->of_file[page]));
		if (!madvise(at, PAGE, MADV_SOFT_OFFLINE))
			add(shared->poisoned);
		check(at, page, get(shared->of_file[page]));
		return;
	}
	at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(at != MAP_FAILED, "mmap");
	*at = 1;
	if (!madvise(at, PAGE, MADV_HWPOISON))
		add(shared->poisoned);
}

/* In a child, which the kernel may kill. The pages are lost. */
static void poison(void)
{
	pid_t child;

	if (get(shared->poisoned) >= 200)
		return;
	child = fork();
	if (!child) {
		poison_page();
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

/*
 * Linux retries until a signal arrives, even if locked memory leaves no
 * room, and in places only until a fatal one: use a child.
 */
static bool take_offline(const char *path)
{
	pid_t child = fork();
	char state[16] = "";
	int fd;

	if (!child) {
		signal(SIGALRM, SIG_DFL);
		alarm(5);
		_exit(!write_text(path, "offline"));
	}
	waitpid(child, NULL, 0);
	/* It may have been killed after its work was done. */
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return false;
	if (read(fd, state, sizeof(state) - 1) < 0)
		state[0] = 0;
	close(fd);
	return !strncmp(state, "offline", 7);
}

/* Take a movable memory block offline and online again. */
static void move_block(void)
{
	const char *dir = "/sys/devices/system/memory";
	DIR *blocks = opendir(dir);
	struct dirent *entry;

	while (blocks && (entry = readdir(blocks))) {
		char path[300];

		if (strncmp(entry->d_name, "memory", 6) || any(4))
			continue;
		snprintf(path, sizeof(path), "%s/%s/state", dir, entry->d_name);
		if (take_offline(path))
			while (!write_text(path, "online") && !get(shared->stop))
				usleep(1000);
		break;
	}
	if (blocks)
		closedir(blocks);
}

static void change_luf(void)
{
	while (!get(shared->stop)) {
		switch (any(get(shared->is_long) ? 9 : 8)) {
		case 0:
			if (code_is_fixed())
				break;
			write_text(LUF "enabled", "0");
			usleep(any(20000));
			write_text(LUF "enabled", "1");
			break;
		case 1:
			write_text(LUF "pool_max_pages", any(2) ? "0" : "300");
			break;
		case 2:
			write_text(LUF "direct_batch_pages", any(2) ? "0" : "100");
			break;
		case 3:
			write_text(LUF "max_age_ms", any(2) ? "30000" : "200");
			break;
		case 4:
			write_text("/proc/sys/vm/compact_memory", "1");
			break;
		case 5:
			move_block();
			break;
		case 8:
			poison();
			break;
		default:
			write_text(LUF "drain", "1");
		}
		usleep(any(200000));
	}
	write_text(LUF "pool_max_pages", "0");
	write_text(LUF "direct_batch_pages", "0");
	write_text(LUF "max_age_ms", "30000");
	write_text(LUF "enabled", "1");
}

static pid_t start(void (*actor)(void), int number)
{
	pid_t child = fork();

	must(child >= 0, "fork");
	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	self = number;
	pin(0, 3);
	seed += number;
	actor();
	exit(0);
}

/* Result */

/* Counters of the kernel since boot. */
static void print_counts(void)
{
	DIR *stats = opendir(LUF "stats");
	struct dirent *entry;

	while (stats && (entry = readdir(stats))) {
		long n;

		if (*entry->d_name == '.' || !strcmp(entry->d_name, "pages_per_drain"))
			continue;
		n = count(entry->d_name);
		if (n)
			ksft_print_msg("%s %ld\n", entry->d_name, n);
	}
	if (stats)
		closedir(stats);
}

/* A process can fill the rest soon, and a memory block fits into it. */
static void take_ballast(void)
{
	size_t kib = kib_of("MemFree");
	char *at;

	if (kib <= LEFT_KIB)
		return;
	at = mmap(NULL, (kib - LEFT_KIB) << 10, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	must(at != MAP_FAILED, "mmap");
	madvise(at, (kib - LEFT_KIB) << 10, MADV_HUGEPAGE);
	madvise(at, (kib - LEFT_KIB) << 10, MADV_DONTFORK);
	must(!mlock(at, (kib - LEFT_KIB) << 10), "mlock");
}

static void make_file(void)
{
	uint64_t words[WORDS];
	int fd = open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0644);

	for (uint32_t page = 0; page < PAGES; page++) {
		fill(words, page, 0);
		must(write(fd, words, PAGE) == (ssize_t)PAGE, NAME);
	}
	must(!fsync(fd), NAME);
	close(fd);
}

int main(int argc, char **argv)
{
	static void (* const actors[])(void) = {
		read_file, read_file, write_file, write_file, change_mappings,
		write_memory, reclaim_some, reclaim_some, reclaim_some, reclaim_some,
		change_luf, keep_victims, fill_memory,
	};
	const size_t fillers = 2;
	unsigned int seconds = argc > 1 ? atoi(argv[1]) : 10;
	bool is_long = seconds >= 60;
	size_t nr = ARRAY_SIZE(actors) - (is_long ? 0 : fillers);
	pid_t children[ARRAY_SIZE(actors)];
	bool ended_well = true;
	long before;

	ksft_print_header();
	begin_luf_test();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	must(shared != MAP_FAILED, "mmap");
	shared->is_long = is_long;
	ksft_set_plan(4);
	write_text("/proc/self/oom_score_adj", "-1000");
	make_file();
	if (is_long)
		take_ballast();
	write_text(LUF "enabled", "1");
	before = all_deferred();

	for (size_t i = 0; i < nr; i++)
		children[i] = start(actors[i], i + 1);
	sleep(seconds);
	/* A slow machine may not have got there yet. */
	for (unsigned int i = 0; i < 10 * seconds && all_deferred() == before; i++)
		sleep(1);
	set(shared->stop, true);
	for (size_t i = 0; i < nr; i++) {
		int status;

		waitpid(children[i], &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			ksft_print_msg("actor %zu ended with 0x%x\n", i, status);
			ended_well = false;
		}
	}
	unlink(NAME);
	write_text(LUF "drain", "1");

	ksft_print_msg("%lu reads, %lu writes, %lu mappings, %lu reclaims, %lu forks\n",
		       shared->reads, shared->writes, shared->changes, shared->reclaims,
		       shared->forks);
	ksft_print_msg("%lu times memory was filled, %lu of them killed, %lu pages poisoned\n",
		       shared->hogs, shared->killed, shared->poisoned);
	ksft_print_msg("%ld pages unmapped lazily\n", all_deferred() - before);
	print_counts();
	ksft_test_result(ended_well, "everybody ended well\n");
	ksft_test_result(!shared->stale, "no stale read\n");
	ksft_test_result(all_deferred() > before, "pages were unmapped lazily\n");
	ksft_test_result(!number(LUF "pool_pages") && released() == all_deferred(),
			 "no page was lost: %ld deferred, %ld released, %ld wait\n", all_deferred(),
			 released(), number(LUF "pool_pages"));

	ksft_finished();
}
