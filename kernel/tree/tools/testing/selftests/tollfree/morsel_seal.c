// SPDX-License-Identifier: GPL-2.0-only
/* Tests of seals of a morsel. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "morsel.h"

#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC	0x20
#endif

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE	0x10
#endif

static void a_sealed_one_stays(void)
{
	int fd = make_sealed(4 * MIB, PAGE);
	char *memory = map(fd, 4 * MIB, PROT_READ);

	CHECK(memory != MAP_FAILED);
	CHECK(fcntl(fd, F_GET_SEALS) == ALL);
	CHECK(pwrite(fd, "x", 1, 0) < 0 && errno == EPERM);
	CHECK(ftruncate(fd, PAGE) && errno == EPERM);
	CHECK(ftruncate(fd, 8 * MIB) && errno == EPERM);
	CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE) &&
	      errno == EPERM);
	CHECK(map(fd, 4 * MIB, PROT_READ | PROT_WRITE) == MAP_FAILED && errno == EPERM);
	CHECK(mprotect(memory, 4 * MIB, PROT_READ | PROT_WRITE) && errno == EACCES);
	CHECK(dies_by(child_status(touch_for_writing, memory), SIGSEGV));
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EPERM);
	CHECK(others_see(fd, 4 * MIB, PAGE));
	munmap(memory, 4 * MIB);
	close(fd);
}

static void no_seal_while_it_can_be_written(void)
{
	int fd = make_filled(4 * MIB, PAGE), pair[2];
	char *memory = map(fd, 4 * MIB, PROT_READ | PROT_WRITE);
	struct iovec piece = { memory, PAGE };

	CHECK(memory != MAP_FAILED);
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EBUSY);
	CHECK(!pipe(pair) && vmsplice(pair[1], &piece, 1, 0) == PAGE);
	CHECK(!munmap(memory, 4 * MIB));
	/* The pipe holds a page. */
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EBUSY);
	close(pair[0]);
	close(pair[1]);
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	/* Sealing the content seals the size, too. */
	CHECK(fcntl(fd, F_GET_SEALS) == (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW));
	CHECK(others_see(fd, 4 * MIB, PAGE));
	close(fd);
}

/* Writable mappings stay, and no process gets a new one. */
static void a_writer_may_be_the_last(void)
{
	size_t size = 4 * MIB;
	int fd = make(size);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE), *reader, *early;
	pid_t pid;

	early = map(fd, size, PROT_READ);
	CHECK(memory != MAP_FAILED && early != MAP_FAILED);
	write_words(memory, size, PAGE);
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
	CHECK(fcntl(fd, F_GET_SEALS) == F_SEAL_FUTURE_WRITE);
	CHECK(map(fd, size, PROT_READ | PROT_WRITE) == MAP_FAILED && errno == EPERM);
	CHECK(pwrite(fd, "x", 1, 0) < 0 && errno == EPERM);
	CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE) &&
	      errno == EPERM);
	reader = map(fd, size, PROT_READ);
	CHECK(reader != MAP_FAILED && has_words(reader, 0, size, PAGE));
	CHECK(mprotect(reader, size, PROT_READ | PROT_WRITE) && errno == EACCES);
	store(memory, 7);
	pid = fork();
	if (!pid) {
		store(memory + 8, 8);
		_exit(load(memory) == 7 ? 0 : 1);
	}
	CHECK(ends_well(pid) && load(reader) == 7 && load(reader + 8) == 8);
	/* As for a memfd: what could become writable before. */
	CHECK(!mprotect(early, size, PROT_READ | PROT_WRITE));
	munmap(early, size);
	CHECK(!ftruncate(fd, size + PAGE) && !ftruncate(fd, size));
	CHECK(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) && errno == EBUSY);
	munmap(memory, size);
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	CHECK(load(reader) == 7);
	munmap(reader, size);
	close(fd);
}

static void permission_to_execute_may_stay(void)
{
	int fd = make_filled(PAGE, PAGE), program = make_filled(PAGE, PAGE);
	char *memory = map(program, PAGE, PROT_READ | PROT_WRITE);

	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_EXEC) && fcntl(fd, F_GET_SEALS) == F_SEAL_EXEC);
	CHECK(fchmod(fd, 0700) && errno == EPERM);
	CHECK(!fchmod(fd, 0640) && pwrite(fd, "x", 1, 0) == 1);
	/* What may be executed is sealed. */
	CHECK(!fchmod(program, 0700));
	CHECK(fcntl(program, F_ADD_SEALS, F_SEAL_EXEC) && errno == EBUSY);
	CHECK(fcntl(program, F_GET_SEALS) == 0);
	munmap(memory, PAGE);
	CHECK(!fcntl(program, F_ADD_SEALS, F_SEAL_EXEC));
	CHECK(fcntl(program, F_GET_SEALS) == (F_SEAL_EXEC | F_SEAL_FUTURE_WRITE | F_SEAL_WRITE |
					      F_SEAL_SHRINK | F_SEAL_GROW));
	CHECK(fchmod(program, 0600) && errno == EPERM);
	CHECK(pwrite(program, "x", 1, 0) < 0 && errno == EPERM);
	CHECK(others_see(program, PAGE, PAGE));
	close(fd);
	close(program);
}

static void *seal(void *argument)
{
	int fd = *(int *)argument;

	return fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) ? (void *)(long)errno : NULL;
}

/* A pin that is taken after the seal has checked for pins. */
static void a_late_pin_is_seen(void)
{
	int fd, pair[2];
	pthread_t thread;
	struct iovec piece;
	char *memory;
	void *err;

	if (!can_stop())
		return;
	fd = make_filled(4 * MIB, PAGE);
	memory = mmap(NULL, 4 * MIB, PROT_READ, MAP_PRIVATE, fd, 0);
	piece = (struct iovec){ memory, PAGE };
	CHECK(memory != MAP_FAILED && !pipe(pair) && write_text(STOP_AT, "before_close"));
	pthread_create(&thread, NULL, seal, &fd);
	wait_for_stopped();
	CHECK(vmsplice(pair[1], &piece, 1, 0) == PAGE);
	CHECK(write_text(STOP_AT, "nowhere"));
	pthread_join(thread, &err);
	CHECK((long)err == EBUSY && fcntl(fd, F_GET_SEALS) == 0);
	close(pair[0]);
	close(pair[1]);
	CHECK(has_words(memory, 0, 4 * MIB, PAGE));
	/* A mapping of single pages is not a pin. */
	CHECK(!fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	CHECK(has_words(memory, 0, 4 * MIB, PAGE) && others_see(fd, 4 * MIB, PAGE));
	munmap(memory, 4 * MIB);
	close(fd);
}

static void ptrace_cannot_write_a_sealed_one(void)
{
	size_t size = 4 * MIB;
	int fd = make_sealed(size, PAGE), self = open("/proc/self/mem", O_RDWR);
	uint64_t word = 0;
	char *memory;

	for (int shared = 0; shared < 2; shared++) {
		memory = mmap(NULL, size, PROT_READ, shared ? MAP_SHARED : MAP_PRIVATE, fd, 0);
		CHECK(memory != MAP_FAILED && has_words(memory, 0, size, PAGE));
		CHECK(pread(self, &word, 8, (off_t)(memory + PAGE)) == 8 && word == word_of(PAGE));
		CHECK(pwrite(self, "x", 1, (off_t)memory) < 0 && errno == EIO);
		CHECK(has_words(memory, 0, size, PAGE));
		munmap(memory, size);
	}
	close(self);
	CHECK(others_see(fd, size, PAGE));
	close(fd);
}

/* One request at a time. */
struct ring {
	int fd;
	unsigned int *tail, *seen;
	struct io_uring_sqe *request;
	struct io_uring_cqe *answers;
	struct io_uring_params params;
};

static bool open_ring(struct ring *ring)
{
	struct io_uring_params *params = &ring->params;
	unsigned int *array;
	char *memory;
	size_t size;

	memset(ring, 0, sizeof(*ring));
	ring->fd = syscall(SYS_io_uring_setup, 1, params);
	if (ring->fd < 0)
		return false;
	CHECK(params->features & IORING_FEAT_SINGLE_MMAP);
	size = params->cq_off.cqes + params->cq_entries * sizeof(*ring->answers);
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
		      IORING_OFF_SQ_RING);
	ring->request = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
			     IORING_OFF_SQES);
	if (!CHECK(memory != MAP_FAILED && ring->request != MAP_FAILED))
		return false;
	ring->tail = (void *)(memory + params->sq_off.tail);
	ring->seen = (void *)(memory + params->cq_off.head);
	ring->answers = (void *)(memory + params->cq_off.cqes);
	array = (void *)(memory + params->sq_off.array);
	array[0] = 0;
	return true;
}

/* Result from the kernel. */
static int ask(struct ring *ring, int opcode, int fd, char *buffer, size_t length)
{
	unsigned int seen = get(*ring->seen);
	int result;

	*ring->request = (struct io_uring_sqe){
		.opcode = opcode, .fd = fd, .addr = (unsigned long)buffer, .len = length,
	};
	set(*ring->tail, get(*ring->tail) + 1);
	if (!CHECK(syscall(SYS_io_uring_enter, ring->fd, 1, 1, IORING_ENTER_GETEVENTS, NULL,
			   0) == 1))
		return -1;
	result = ring->answers[seen & (ring->params.cq_entries - 1)].res;
	set(*ring->seen, seen + 1);
	return result;
}

static int fix_buffer(struct ring *ring, char *memory, size_t size)
{
	struct iovec piece = { memory, size };

	return syscall(SYS_io_uring_register, ring->fd, IORING_REGISTER_BUFFERS, &piece, 1);
}

/* Linux pins a fixed buffer for writing in any case. */
static void fixed_buffers_are_the_writers(void)
{
	size_t size = 4 * MIB, half = 2 * MIB;
	int fd = make(size), disk = open("/data/morsel-ring", O_RDWR | O_CREAT | O_DIRECT, 0600);
	char *memory = map(fd, size, PROT_READ | PROT_WRITE);
	struct ring ring;

	CHECK(memory != MAP_FAILED && disk >= 0);
	if (!open_ring(&ring)) {
		lacks = "no io_uring";
		goto out;
	}
	write_words(memory, half, PAGE);
	CHECK(!fix_buffer(&ring, memory, size));
	CHECK(ask(&ring, IORING_OP_WRITE_FIXED, disk, memory, half) == (int)half);
	CHECK(ask(&ring, IORING_OP_READ_FIXED, disk, memory + half, half) == (int)half);
	CHECK(has_words(memory + half, 0, half, PAGE));
	/* The device still uses the page, although it is not mapped. */
	munmap(memory, size);
	CHECK(fcntl(fd, F_ADD_SEALS, ALL) && errno == EBUSY);
	CHECK(!syscall(SYS_io_uring_register, ring.fd, IORING_UNREGISTER_BUFFERS, NULL, 0));
	for (int i = 0; i < 500 && fcntl(fd, F_ADD_SEALS, ALL) && errno == EBUSY; i++)
		usleep(10000);
	memory = map(fd, size, PROT_READ);
	CHECK(memory != MAP_FAILED);
	CHECK(fix_buffer(&ring, memory, size) && errno == EFAULT);
	CHECK(ask(&ring, IORING_OP_WRITE, disk, memory, half) == (int)half);
	CHECK(ask(&ring, IORING_OP_READ, disk, memory, half) == -EFAULT);
	CHECK(has_words(memory, 0, half, PAGE));
	close(ring.fd);
out:
	munmap(memory, size);
	close(disk);
	unlink("/data/morsel-ring");
	close(fd);
}

const struct test morsel_seal_tests[] = {
	TEST(a_sealed_one_stays),
	TEST(no_seal_while_it_can_be_written),
	TEST(a_writer_may_be_the_last),
	TEST(permission_to_execute_may_stay),
	TEST(a_late_pin_is_seen),
	TEST(ptrace_cannot_write_a_sealed_one),
	TEST(fixed_buffers_are_the_writers),
	{}
};
