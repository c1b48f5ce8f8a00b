// SPDX-License-Identifier: GPL-2.0-only
/*
 * Morsels under stress: everything at once, for some seconds (the first argument,
 * 10 if there is none).
 *
 * Each page of a morsel contains the number of the morsel and its index. Many processes
 * create, seal, replace, map and change morsels in every way; they fork, execute other
 * programs, and are killed at any time. Other morsels are truncated, punched, passed on,
 * and written by several processes. A read of a page returns what was written there, or
 * zeros where allowed, and never the data of another morsel. In the end all memory is
 * freed.
 */
#define _GNU_SOURCE
#include <linux/falloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "morsel_test.h"
#include "stress.h"

#define MOUNT	"/tmp/morsel-stress"
#define GROUP	"/tmp/morsel-cgroup"

enum { NAMES = 4, MOST_PAGES = 1600 };

#define add(variable)		__atomic_add_fetch(&(variable), 1, __ATOMIC_SEQ_CST)

/* Shared by all processes. */
static struct {
	uint32_t last_id;
	uint64_t sealed, mapped, looks, sent, cut, killed, full, mounts, together;
	uint64_t wrong;
	bool stop;
} *shared;

/* Content of a page: number of the morsel, and index of the page. */
static uint64_t word_of(uint32_t id, size_t page)
{
	return (uint64_t)id << 32 | page;
}

static void look(uint64_t word, uint32_t id, size_t page, bool may_be_zero)
{
	add(shared->looks);
	if (word == word_of(id, page) || (may_be_zero && !word))
		return;
	add(shared->wrong);
	fprintf(stderr, "page %zu of morsel %u: read 0x%lx\n", page, id, word);
}

/* A few pages of a mapping that begins with page @first. */
static void look_at(const char *memory, size_t first, size_t pages, uint32_t id)
{
	for (int i = 0; pages && i < 8; i++) {
		size_t page = any(pages);

		look(load(memory + page * PAGE), id, first + page, false);
	}
}

static bool fill_file(int fd, uint32_t id, size_t pages)
{
	static uint64_t words[PAGE / 8];

	for (size_t page = 0; page < pages; page++) {
		for (size_t i = 0; i < ARRAY_SIZE(words); i++)
			words[i] = word_of(id, page);
		if (write(fd, words, PAGE) != (ssize_t)PAGE)
			return false;
	}
	return true;
}

/* Create sealed morsels, each replacing an older one. */
static void make_sealed_ones(void)
{
	while (!get(shared->stop)) {
		char from[64], to[64];
		uint32_t id = add(shared->last_id);
		int fd;

		snprintf(from, sizeof(from), MOUNT "/new%d", getpid());
		snprintf(to, sizeof(to), MOUNT "/sealed%u", any(NAMES));
		fd = open(from, O_RDWR | O_CREAT | O_TRUNC, 0600);
		must(fd >= 0, from);
		if (!fill_file(fd, id, any(MOST_PAGES) + 1))
			add(shared->full);
		else if (!fcntl(fd, F_ADD_SEALS, ALL) && !rename(from, to))
			add(shared->sealed);
		close(fd);
		unlink(from);
	}
}

/* Open one of them, and get its number and size; -1 if there is none. */
static int open_sealed(uint32_t *id, size_t *pages)
{
	char name[64];
	struct stat stat;
	uint64_t word;
	int fd;

	snprintf(name, sizeof(name), MOUNT "/sealed%u", any(NAMES));
	fd = open(name, O_RDONLY);
	if (fd < 0)
		return -1;
	must(!fstat(fd, &stat) && pread(fd, &word, 8, 0) == 8, name);
	*id = word >> 32;
	*pages = stat.st_size / PAGE;
	return fd;
}

/* At any address, with the default alignment or page alignment. */
static char *map_somewhere(int fd, size_t first, size_t pages)
{
	int flags = any(4) ? MAP_SHARED : MAP_PRIVATE;
	int protection = any(8) ? PROT_READ : PROT_READ | PROT_EXEC;
	char *at = NULL;

	if (any(3) == 0) {
		at = mmap(NULL, (pages + 1) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		must(at != MAP_FAILED, "mmap");
		munmap(at, PAGE);
		at += PAGE;
		flags |= MAP_FIXED;
	}
	if (any(4) == 0)
		flags |= MAP_POPULATE;
	at = mmap(at, pages * PAGE, protection, flags, fd, first * PAGE);
	must(at != MAP_FAILED, "mmap of a sealed one");
	add(shared->mapped);
	return at;
}

static void splice_some(char *memory, size_t pages, size_t first, uint32_t id)
{
	size_t page = any(pages);
	struct iovec piece = { memory + page * PAGE, PAGE };
	uint64_t word;
	int pair[2];

	must(!pipe(pair), "pipe");
	if (vmsplice(pair[1], &piece, 1, 0) == (ssize_t)PAGE) {
		/* The page outlives the mapping. */
		munmap(memory, pages * PAGE);
		must(read(pair[0], &word, 8) == 8, "read from a pipe");
		look(word, id, first + page, false);
	}
	close(pair[0]);
	close(pair[1]);
}

static void call_another(char *memory, size_t first, size_t pages, uint32_t id)
{
	pid_t pid = fork();

	if (!pid) {
		look_at(memory, first, pages, id);
		switch (any(3)) {
		case 0:
			execl("/bin/true", "true", NULL);
			break;
		case 1:
			raise(SIGKILL);
			break;
		default:
			munmap(memory, pages * PAGE / 2 & ~(PAGE - 1));
		}
		_exit(0);
	}
	must(waitpid(pid, NULL, 0) == pid, "waitpid");
}

/* All operations on a mapping, which must not affect other mappings. */
static void change_mapping(char **memory, size_t first, size_t pages, uint32_t id)
{
	static const int advice[] = { MADV_DONTNEED, MADV_COLD, MADV_PAGEOUT, MADV_RANDOM,
				      MADV_HUGEPAGE, MADV_DONTFORK, MADV_DOFORK };
	size_t page = any(pages);
	char *at = *memory + page * PAGE;

	switch (any(8)) {
	case 0:
		munmap(at, PAGE);
		look_at(*memory, first, page, id);
		break;
	case 1:
		mprotect(at, PAGE, PROT_NONE);
		look_at(*memory, first, page, id);
		mprotect(at, PAGE, PROT_READ);
		break;
	case 2:
		at = mremap(*memory, pages * PAGE, pages * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
			    (char *)(0x600000000000 + (any(2) ? PAGE : 2 * MIB) * any(1 << 12)));
		if (at != MAP_FAILED)
			*memory = at;
		look_at(*memory, first, pages, id);
		break;
	case 3:
		splice_some(*memory, pages, first, id);
		break;
	case 4:
		call_another(*memory, first, pages, id);
		break;
	case 5:
		mlock(at, PAGE);
		look_at(*memory, first, pages, id);
		break;
	default:
		madvise(*memory, pages * PAGE, advice[any(ARRAY_SIZE(advice))]);
		madvise(at, PAGE, advice[any(ARRAY_SIZE(advice))]);
		look_at(*memory, first, pages, id);
	}
}

static void read_one(void)
{
	size_t pages, first;
	uint32_t id;
	int fd = open_sealed(&id, &pages);
	char *memory;

	if (fd < 0) {
		usleep(1000);
		return;
	}
	first = any(2) ? 0 : any(pages);
	pages -= first;
	memory = map_somewhere(fd, first, pages);
	/* Sometimes the mapping has the last reference. */
	if (any(2))
		close(fd);
	else
		fd = dup2(fd, 100);
	look_at(memory, first, pages, id);
	if (any(2))
		change_mapping(&memory, first, pages, id);
	munmap(memory, pages * PAGE);
	close(100);
}

static void read_sealed_ones(void)
{
	while (!get(shared->stop))
		read_one();
}

/* A process that is killed at any point. */
static void kill_readers(void)
{
	while (!get(shared->stop)) {
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			seed += getpid();
			for (;;)
				read_one();
		}
		usleep(any(20000));
		kill(pid, SIGKILL);
		must(waitpid(pid, NULL, 0) == pid, "waitpid");
		add(shared->killed);
	}
}

/* One process truncates and fills a file, others read: its data or zeros. */
static void cut_and_read(void)
{
	uint32_t id = add(shared->last_id);
	size_t pages = any(MOST_PAGES) + 1;
	int fd = open(MOUNT, O_RDWR | O_TMPFILE, 0600);
	uint64_t word;
	char *memory;
	pid_t pid;

	must(fd >= 0 && !ftruncate(fd, pages * PAGE), "a file to cut");
	pid = fork();
	memory = mmap(NULL, pages * PAGE, pid ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
		      fd, 0);
	must(memory != MAP_FAILED, "mmap of an open one");
	if (!pid) {
		seed += getpid();
		for (;;) {
			size_t page = any(pages);

			if (try_to_load(memory + page * PAGE, &word))
				look(word, id, page, true);
		}
	}
	while (!get(shared->stop) && any(100)) {
		size_t page = any(pages);

		switch (any(16)) {
		case 0:
			must(!ftruncate(fd, page * PAGE) && !ftruncate(fd, pages * PAGE), "cut");
			add(shared->cut);
			break;
		case 1:
			must(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					page * PAGE, any(MOST_PAGES) * PAGE + PAGE), "punch");
			add(shared->cut);
			break;
		default:
			if (try_to_store(memory + page * PAGE, word_of(id, page)) &&
			    try_to_load(memory + page * PAGE, &word))
				look(word, id, page, false);
		}
	}
	kill(pid, SIGKILL);
	must(waitpid(pid, NULL, 0) == pid, "waitpid");
	munmap(memory, pages * PAGE);
	close(fd);
}

static void cut_open_ones(void)
{
	signal(SIGBUS, jump);
	while (!get(shared->stop))
		cut_and_read();
}

static char *map_to_write(int fd, size_t pages)
{
	char *memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	must(memory != MAP_FAILED, "mmap of one that others write");
	return memory;
}

static void write_page(char *memory, size_t pages, uint32_t id)
{
	size_t page = any(pages);
	uint64_t word;

	/* Others remove pages. */
	if (try_to_store(memory + page * PAGE, word_of(id, page)) &&
	    try_to_load(memory + page * PAGE, &word))
		look(word, id, page, true);
}

/* One of several writers, until it is killed. */
static void write_for_ever(int fd, char *memory, size_t pages, uint32_t id)
{
	if (any(2))
		memory = map_to_write(fd, pages);
	for (;;) {
		pid_t pid;

		write_page(memory, pages, id);
		switch (any(200)) {
		case 0:
			munmap(memory, pages * PAGE);
			memory = map_to_write(fd, pages);
			break;
		case 1:
			memory = mremap(memory, pages * PAGE, pages * PAGE,
					MREMAP_MAYMOVE | MREMAP_FIXED,
					(char *)(0x600000000000 + 2 * MIB * any(1 << 12)));
			must(memory != MAP_FAILED, "mremap of one that others write");
			break;
		case 2:
			pid = fork();
			if (!pid) {
				write_page(memory, pages, id);
				_exit(0);
			}
			waitpid(pid, NULL, 0);
			break;
		case 3:
			fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				  any(pages) * PAGE, any(64) * PAGE + PAGE);
			break;
		case 4:
			mprotect(memory + any(pages) * PAGE, PAGE, PROT_READ | PROT_WRITE);
			break;
		}
	}
}

/* A child that a killed writer left behind may still have a mapping. */
static bool is_sealed_soon(int fd)
{
	for (int i = 0; i < 1000; i++) {
		if (!fcntl(fd, F_ADD_SEALS, ALL))
			return true;
		usleep(10000);
	}
	return false;
}

static void write_one_together(void)
{
	enum { WRITERS = 3 };
	uint32_t id = add(shared->last_id);
	size_t pages = any(MOST_PAGES) + 1;
	int fd = open(MOUNT, O_RDWR | O_TMPFILE, 0600);
	pid_t pids[WRITERS];
	uint64_t word;
	char *memory;

	must(fd >= 0 && !ftruncate(fd, pages * PAGE), "a file for several writers");
	memory = map_to_write(fd, pages);
	for (int i = 0; i < WRITERS; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		seed += getpid();
		write_for_ever(fd, memory, pages, id);
	}
	for (int i = any(2000); i > 0; i--)
		write_page(memory, pages, id);
	for (int i = 0; i < WRITERS; i++) {
		kill(pids[i], SIGKILL);
		must(waitpid(pids[i], NULL, 0) == pids[i], "waitpid");
		write_page(memory, pages, id);
	}
	munmap(memory, pages * PAGE);
	must(is_sealed_soon(fd), "seal of one without writers");
	memory = mmap(NULL, pages * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	must(memory != MAP_FAILED, "mmap of one without writers");
	for (size_t page = 0; page < pages; page++)
		if (try_to_load(memory + page * PAGE, &word))
			look(word, id, page, true);
	munmap(memory, pages * PAGE);
	close(fd);
	add(shared->together);
}

static void write_together(void)
{
	signal(SIGBUS, jump);
	while (!get(shared->stop))
		write_one_together();
}

static void send_descriptor(int to, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = "", byte = 0;
	struct iovec piece = { &byte, 1 };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room,
				  .msg_controllen = sizeof(room) };
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	must(sendmsg(to, &message, MSG_NOSIGNAL) == 1 || errno == EPIPE, "sendmsg");
}

static int receive_descriptor(int from)
{
	char room[CMSG_SPACE(sizeof(int))], byte;
	struct iovec piece = { &byte, 1 };
	struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1, .msg_control = room,
				  .msg_controllen = sizeof(room) };
	int fd;

	if (recvmsg(from, &message, 0) != 1)
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* Written here, read in another process, which may be dead already. */
static void send_one(void)
{
	uint32_t id = add(shared->last_id);
	size_t page = 0, pages = any(MOST_PAGES) + 1;
	int fd = open(MOUNT, O_RDWR | O_TMPFILE, 0600), pair[2];
	char *memory;
	pid_t pid;

	must(fd >= 0 && !ftruncate(fd, pages * PAGE), "a file to send");
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	pid = fork();
	if (!pid) {
		close(fd);
		close(pair[0]);
		fd = receive_descriptor(pair[1]);
		if (fd < 0)
			_exit(0);
		memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		must(memory != MAP_FAILED, "mmap of what was sent");
		for (; page < pages; page += 64)
			look(load(memory + page * PAGE), id, page, false);
		_exit(0);
	}
	close(pair[1]);
	memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(memory != MAP_FAILED, "mmap of what is sent");
	while (page < pages && try_to_store(memory + page * PAGE, word_of(id, page)))
		page += 64;
	munmap(memory, pages * PAGE);
	if (page < pages) {
		/* The mount is full. */
		add(shared->full);
	} else {
		if (any(4) == 0)
			kill(pid, SIGKILL);
		send_descriptor(pair[0], fd);
		if (any(4) == 0)
			kill(pid, SIGKILL);
		add(shared->sent);
	}
	close(fd);
	close(pair[0]);
	must(waitpid(pid, NULL, 0) == pid, "waitpid");
}

static void send_open_ones(void)
{
	signal(SIGBUS, jump);
	while (!get(shared->stop))
		send_one();
}

/* More than the limit of the cgroup: SIGBUS or ENOMEM, and all memory is freed. */
static void fill_group(void)
{
	while (!get(shared->stop)) {
		pid_t pid = fork();

		if (!pid) {
			int fd = open(MOUNT, O_RDWR | O_TMPFILE, 0600);
			size_t size = 32 * MIB;
			char *memory;

			if (!write_text(GROUP "/stress/cgroup.procs", "0"))
				_exit(0);
			must(fd >= 0 && !ftruncate(fd, size), "a file to fill");
			if (any(2)) {
				fallocate(fd, 0, 0, size);
				_exit(0);
			}
			memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
			must(memory != MAP_FAILED, "mmap of a file to fill");
			for (size_t at = 0; at < size; at += PAGE)
				memory[at] = 1;
			_exit(0);
		}
		must(waitpid(pid, NULL, 0) == pid, "waitpid");
		add(shared->full);
		usleep(100000);
	}
}

/* Unmount a mount that is in use. */
static void mount_and_unmount(void)
{
	char dir[64];

	snprintf(dir, sizeof(dir), "/tmp/morsel-mount%d", getpid());
	must(!mkdir(dir, 0700), dir);
	while (!get(shared->stop)) {
		uint32_t id = add(shared->last_id);
		size_t pages = any(600) + 1;
		char *memory;
		int fd;

		must(!mount("none", dir, "morselfs", 0, any(2) ? "huge=never" : NULL), dir);
		fd = open(dir, O_RDWR | O_TMPFILE, 0600);
		must(fd >= 0 && fill_file(fd, id, pages), dir);
		memory = mmap(NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		must(memory != MAP_FAILED, "mmap on a mount that goes");
		must(umount(dir) && errno == EBUSY, "umount");
		must(!umount2(dir, MNT_DETACH), "umount");
		look_at(memory, 0, pages, id);
		close(fd);
		look_at(memory, 0, pages, id);
		munmap(memory, pages * PAGE);
		add(shared->mounts);
	}
	rmdir(dir);
}

static void disturb(void)
{
	while (!get(shared->stop)) {
		write_text("/proc/sys/vm/compact_memory", "1");
		write_text("/proc/sys/vm/drop_caches", "3");
		if (!getenv("TOLLFREE_CODE_IS_FIXED")) {
			write_text(SYSFS "enabled", "0");
			usleep(20000);
		}
		write_text(SYSFS "enabled", "1");
		usleep(200000);
	}
}

static pid_t start(void (*actor)(void), size_t number)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	seed *= 2 * number + 1;
	actor();
	exit(0);
}

static void enter_group(void)
{
	mkdir(GROUP, 0755);
	if (mount("none", GROUP, "cgroup2", 0, NULL) && errno != EBUSY)
		ksft_print_msg("no cgroup2: %s\n", strerror(errno));
	write_text(GROUP "/cgroup.subtree_control", "+memory");
	mkdir(GROUP "/stress", 0755);
	write_text(GROUP "/stress/memory.max", "8M");
}

/* Tables wait for a grace period, and memory of a killed process for its exit. */
static bool all_is_given_back(void)
{
	for (int i = 0; i < 500 && (count("pages") || count("tables")); i++)
		usleep(20000);
	return !count("pages") && !count("tables");
}

int main(int argc, char **argv)
{
	static void (* const actors[])(void) = {
		make_sealed_ones, make_sealed_ones, read_sealed_ones, read_sealed_ones,
		read_sealed_ones, kill_readers, kill_readers, cut_open_ones, cut_open_ones,
		send_open_ones, write_together, write_together, fill_group, mount_and_unmount,
		disturb,
	};
	unsigned int seconds = argc > 1 ? atoi(argv[1]) : 10;
	pid_t children[ARRAY_SIZE(actors)];
	struct rlimit none = { 0, 0 };
	bool ended_well = true;

	ksft_print_header();
	mkdir("/tmp", 01777);
	mkdir(MOUNT, 0700);
	if (mount("none", MOUNT, "morselfs", 0, "size=96M"))
		ksft_exit_skip("no morselfs: %s\n", strerror(errno));
	ksft_set_plan(4);
	setrlimit(RLIMIT_CORE, &none);
	enter_group();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	must(shared != MAP_FAILED, "mmap");
	for (size_t i = 0; i < ARRAY_SIZE(actors); i++)
		children[i] = start(actors[i], i + 1);
	sleep(seconds);
	set(shared->stop, true);
	for (size_t i = 0; i < ARRAY_SIZE(actors); i++) {
		int status;

		waitpid(children[i], &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			ksft_print_msg("actor %zu ended with 0x%x\n", i, status);
			ended_well = false;
		}
	}
	write_text(SYSFS "enabled", "1");
	umount2(MOUNT, MNT_DETACH);
	ksft_print_msg("%lu sealed, %lu mappings, %lu looks, %lu sent, %lu cuts\n", shared->sealed,
		       shared->mapped, shared->looks, shared->sent, shared->cut);
	ksft_print_msg("%lu killed, %lu times full, %lu mounts, %lu written together\n",
		       shared->killed, shared->full, shared->mounts, shared->together);
	ksft_test_result(ended_well, "everybody ended well\n");
	ksft_test_result(!shared->wrong, "no read of foreign data\n");
	ksft_test_result(shared->sealed && shared->mapped && shared->sent && shared->cut &&
			 shared->killed && shared->full && shared->mounts && shared->together,
			 "everything happened\n");
	ksft_test_result(all_is_given_back(), "nothing is left: %ld pages, %ld tables\n",
			 count("pages"), count("tables"));
	ksft_finished();
}
