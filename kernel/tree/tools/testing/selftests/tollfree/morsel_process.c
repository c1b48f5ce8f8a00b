// SPDX-License-Identifier: GPL-2.0-only
/* Tests of morsels between processes, and with a device that mirrors a process. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "morsel.h"

static void it_is_sent_by_descriptor(void)
{
	size_t size = 4 * MIB;
	int fd = make(size), pair[2];
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);
	pid_t pid;

	CHECK(memory != MAP_FAILED && !socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	pid = fork();
	if (!pid) {
		char room[CMSG_SPACE(sizeof(int))], byte;
		struct iovec piece = { &byte, 1 };
		struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1,
					  .msg_control = room, .msg_controllen = sizeof(room) };
		int got;

		close(fd);
		if (recvmsg(pair[1], &message, 0) != 1)
			_exit(1);
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(got));
		memory = map(got, size, PROT_READ | PROT_WRITE);
		_exit(memory != MAP_FAILED && has_words(memory, 0, size, PAGE) ? 0 : 2);
	}
	write_words(memory, size, PAGE);
	munmap(memory, size);
	{
		char room[CMSG_SPACE(sizeof(int))] = "", byte = 0;
		struct iovec piece = { &byte, 1 };
		struct msghdr message = { .msg_iov = &piece, .msg_iovlen = 1,
					  .msg_control = room, .msg_controllen = sizeof(room) };
		struct cmsghdr *header = CMSG_FIRSTHDR(&message);

		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
		CHECK(sendmsg(pair[0], &message, 0) == 1);
	}
	CHECK(ends_well(pid));
	close(pair[0]);
	close(pair[1]);
	close(fd);
}

/* A futex is identified by file and page, for any kind of mapping. */
static void a_futex_is_shared(void)
{
	int fd = make(4 * MIB);
	uint32_t *mine = (uint32_t *)map(fd, 4 * MIB, PROT_READ | PROT_WRITE) + 3 * PAGE / 4;
	pid_t pid;

	*mine = 1;
	pid = fork();
	if (!pid) {
		uint32_t *word = (uint32_t *)map(fd, 4 * MIB, PROT_READ) + 3 * PAGE / 4;

		while ((uint32_t)load(word) == 1)
			syscall(SYS_futex, word, FUTEX_WAIT, 1, NULL, NULL, 0);
		_exit(*word == 2 ? 0 : 1);
	}
	usleep(100000);
	*mine = 2;
	CHECK(syscall(SYS_futex, mine, FUTEX_WAKE, 1, NULL, NULL, 0) == 1);
	CHECK(ends_well(pid));
	munmap(mine - 3 * PAGE / 4, 4 * MIB);
	close(fd);
}

static void others_come_and_go_by_all_ways(void)
{
	size_t size = 4 * MIB;
	int fd = make_sealed(size, PAGE), status;
	char *memory = map(fd, size, PROT_READ);

	CHECK(memory != MAP_FAILED);
	for (int i = 0; i < 40; i++) {
		pid_t pid = fork();

		if (!pid) {
			char *mine = map(fd, size, PROT_READ);

			if (i % 4 == 0)
				execl("/bin/true", "true", NULL);
			if (i % 4 == 1)
				raise(SIGKILL);
			if (i % 4 == 2)
				munmap(mine, size);
			_exit(0);
		}
		if (i % 8 == 7)
			kill(pid, SIGKILL);
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(has_words(memory, 0, size, PAGE));
	}
	leave(fd, memory, size);
}

static void other_processes_memory_is_read(void)
{
	size_t size = 4 * MIB;
	int fd = make_sealed(size, PAGE);
	char *memory = map(fd, size, PROT_READ);
	uint64_t word = 0;
	struct iovec here = { &word, 8 }, there = { memory + 2 * MIB + PAGE, 8 };

	CHECK(memory != MAP_FAILED);
	CHECK(process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 8);
	CHECK(word == word_of(2 * MIB + PAGE));
	CHECK(process_vm_writev(getpid(), &here, 1, &there, 1, 0) < 0 && errno == EFAULT);
	munmap(memory, size);
	close(fd);
}

/* As in lib/test_hmm_uapi.h, the HMM test device of Linux. */
struct mirror {
	uint64_t addr, ptr, npages, cpages, faults;
};

#define MIRROR_READ		_IOWR('H', 0x00, struct mirror)
#define MIRROR_WRITE		_IOWR('H', 0x01, struct mirror)
#define MIRROR_SNAPSHOT		_IOWR('H', 0x04, struct mirror)
#define MIRROR_EXCLUSIVE	_IOWR('H', 0x05, struct mirror)

static int ask_mirror(int device, unsigned long what, char *memory, char *buffer,
		      size_t size)
{
	struct mirror mirror = { .addr = (unsigned long)memory, .ptr = (unsigned long)buffer,
				 .npages = size / PAGE };

	return ioctl(device, what, &mirror) ? -errno : (int)mirror.cpages;
}

static bool mirror_reads(int device, char *memory, char *buffer, size_t size)
{
	memset(buffer, 0xff, size);
	return ask_mirror(device, MIRROR_READ, memory, buffer, size) == (int)(size / PAGE) &&
	       !memcmp(buffer, memory, size);
}

/* A device that mirrors the page tables of a process: a GPU, RDMA. */
static void use_a_mirror(char *unused)
{
	size_t size = 4 * MIB + 3 * PAGE;
	int device = open("/dev/hmm_dmirror0", O_RDWR), fd = make_sealed(size, PAGE);
	char *buffer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	char *memory = map(fd, size, PROT_READ);

	(void)unused;
	CHECK(device >= 0 && buffer != MAP_FAILED && memory != MAP_FAILED);
	CHECK(mirror_reads(device, memory, buffer, size) && has_words(buffer, 0, size, PAGE));
	CHECK(ask_mirror(device, MIRROR_SNAPSHOT, memory, buffer, size) == (int)(size / PAGE));
	CHECK((buffer[0] & 3) == 1 && (buffer[size / PAGE - 1] & 3) == 1);
	CHECK(ask_mirror(device, MIRROR_WRITE, memory, buffer, PAGE) == -EPERM);
	/* Mapped as single pages now. */
	CHECK(!munmap(memory + MIB, PAGE));
	CHECK(mirror_reads(device, memory + 2 * MIB, buffer, 2 * MIB));
	munmap(memory, size);
	close(fd);

	/* Whole GiB, and missing pages. */
	fd = make_sealed(GIB, GIB);
	memory = map(fd, GIB, PROT_READ);
	CHECK(memory != MAP_FAILED && mirror_reads(device, memory, buffer, 4 * PAGE));
	CHECK(load(buffer) == word_of(0));
	munmap(memory, GIB);
	close(fd);

	/* An open one: the device loses removed pages. */
	fd = make(size);
	memory = map(fd, size, PROT_READ | PROT_WRITE);
	CHECK(memory != MAP_FAILED);
	write_words(buffer, size, PAGE);
	CHECK(ask_mirror(device, MIRROR_WRITE, memory, buffer, size) == (int)(size / PAGE));
	CHECK(has_words(memory, 0, size, PAGE));
	CHECK(ask_mirror(device, MIRROR_EXCLUSIVE, memory, buffer, PAGE) < 0);
	CHECK(has_words(memory, 0, size, PAGE));
	CHECK(!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 2 * MIB));
	CHECK(mirror_reads(device, memory, buffer, size) && !load(buffer));
	CHECK(has_words(buffer + 2 * MIB, 2 * MIB, size - 2 * MIB, PAGE));
	munmap(memory, size);
	close(fd);
	_exit(failed);
}

static void devices_mirror_it(void)
{
	int status = -1;
	pid_t pid;

	if (access("/dev/hmm_dmirror0", R_OK | W_OK)) {
		lacks = "no test device of HMM";
		return;
	}
	pid = fork();
	if (!pid)
		use_a_mirror(NULL);
	for (int i = 0; i < 2000 && !waitpid(pid, &status, WNOHANG); i++)
		usleep(10000);
	CHECK(kill(pid, SIGKILL) && errno == ESRCH && !status);
}

const struct test morsel_process_tests[] = {
	TEST(it_is_sent_by_descriptor),
	TEST(a_futex_is_shared),
	TEST(others_come_and_go_by_all_ways),
	TEST(other_processes_memory_is_read),
	TEST(devices_mirror_it),
	{}
};
