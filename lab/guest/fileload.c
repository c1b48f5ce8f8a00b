// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Random file operations by several processes; every read is compared with a model of the file's content.
 *
 * All processes share a few files. A file's lock is held during one operation on it, and the operation updates the model
 * together with the file. So one process reads what another one has just written, mostly through a read-only mapping that
 * exists since the start. A file is opened for writing only when it is written, and closed soon after, so that files
 * change between having writers and having none. Each process also has a directory of small files that it creates, links,
 * renames and removes. One more process can trigger reclaim all the time (FILE is the memory.reclaim of a cgroup).
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>

#include "util.h"

enum { FILES = 4, NAMES = 48, MAX_PROCESSES = 16 };

#define MOST (64ul << 10) /* bytes of one operation at most */
#define SMALL (12ul << 10) /* size of a small file at most */
#define RECLAIM "4M"

enum operation {
	WRITE,
	WRITE_MAPPED,
	WRITE_PRIVATE,
	TRUNCATE,
	PUNCH,
	ZERO,
	COPY,
	SYNC,
	READ,
	READ_DIRECT,
	READ_MAPPED,
	READ_ALL,
	SEND,
	PAGE_OUT,
	FORGET,
	RENEW_MAPPING,
	NAME,
	OPERATIONS
};

/* How often each is done, relative to the sum of all weights. */
static const struct {
	const char *name;
	unsigned int weight;
} operations[OPERATIONS] = {
	[WRITE] = { "write", 8 },
	[WRITE_MAPPED] = { "write to a mapping", 6 },
	[WRITE_PRIVATE] = { "write to a private mapping", 4 },
	[TRUNCATE] = { "truncate", 2 },
	[PUNCH] = { "punch a hole", 3 },
	[ZERO] = { "zero a range", 2 },
	[COPY] = { "copy_file_range", 4 },
	[SYNC] = { "fsync", 1 },
	[READ] = { "read", 8 },
	[READ_DIRECT] = { "read directly", 3 },
	[READ_MAPPED] = { "read a mapping", 30 },
	[READ_ALL] = { "read all of a mapping", 2 },
	[SEND] = { "sendfile", 3 },
	[PAGE_OUT] = { "MADV_PAGEOUT", 6 },
	[FORGET] = { "POSIX_FADV_DONTNEED", 3 },
	[RENEW_MAPPING] = { "map anew", 2 },
	[NAME] = { "small files", 10 },
};

/* A file's model; beyond its size the bytes are 0. */
struct model {
	pthread_mutex_t lock;
	size_t size;
	unsigned char *bytes;
};

static struct shared {
	struct model files[FILES];
	unsigned long done[MAX_PROCESSES][OPERATIONS];
} *shared;

/* A process's view of a file. */
struct file {
	struct model *model;
	const unsigned char *mapping; /* of `most` bytes, read-only */
	int reader, writer; /* -1: not open for writing */
};

static struct file files[FILES];
static const char *directory;
static size_t most; /* bytes of a file */
static unsigned int self;
static uint64_t seed;
static struct timespec last;

static uint64_t below(uint64_t limit)
{
	return next_random(&seed) % limit;
}

static size_t page_down(size_t offset)
{
	return offset & ~(PAGE - 1);
}

static size_t page_up(size_t offset)
{
	return page_down(offset + PAGE - 1);
}

static bool is_over(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > last.tv_sec || (now.tv_sec == last.tv_sec && now.tv_nsec >= last.tv_nsec);
}

static char *path_of(unsigned int number)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/shared-%u", directory, number);
	return path;
}

static _Noreturn void wrong(const char *how, unsigned int file, size_t offset, int is, int should)
{
	fprintf(stderr, "process %u, file %u of %zu bytes, by %s: byte %#zx is %#x and has to be %#x\n", self, file,
		files[file].model->size, how, offset, is, should);
	exit(1);
}

/* Compares data that was read with the model. */
static void compare(const char *how, unsigned int file, const unsigned char *is, size_t offset, size_t length)
{
	const unsigned char *should = files[file].model->bytes + offset;

	if (!memcmp(is, should, length))
		return;
	for (size_t i = 0; i < length; i++)
		if (is[i] != should[i])
			wrong(how, file, offset + i, is[i], should[i]);
	/* The content has changed since the first comparison. */
	wrong(how, file, offset, -1, -1);
}

static void scribble(unsigned char *to, size_t length)
{
	while (length) {
		uint64_t word = next_random(&seed);
		size_t part = length < sizeof(word) ? length : sizeof(word);

		memcpy(to, &word, part);
		to += part;
		length -= part;
	}
}

static int writer(struct file *file, unsigned int number)
{
	if (file->writer < 0) {
		file->writer = open(path_of(number), O_RDWR | O_CLOEXEC);
		if (file->writer < 0)
			fail("open for writing");
	}
	return file->writer;
}

/* Closes the file for writing most of the time. */
static void maybe_close(struct file *file)
{
	if (file->writer < 0 || below(4) == 0)
		return;
	if (close(file->writer))
		fail("close");
	file->writer = -1;
}

static void map(struct file *file)
{
	void *mapping = mmap(NULL, most, PROT_READ, MAP_SHARED, file->reader, 0);

	if (mapping == MAP_FAILED)
		fail("mmap");
	file->mapping = mapping;
}

/* Picks a random range of the file; the length is 0 if the file is empty. */
static void pick(const struct model *model, size_t *offset, size_t *length)
{
	*offset = model->size ? below(model->size) : 0;
	*length = model->size - *offset;
	if (*length > MOST)
		*length = MOST;
	if (*length)
		*length = 1 + below(*length);
}

static void resize(struct model *model, size_t size)
{
	if (size < model->size)
		memset(model->bytes + size, 0, model->size - size);
	model->size = size;
}

static void do_write(struct file *file, unsigned int number)
{
	struct model *model = file->model;
	size_t offset = below(most), length = 1 + below(MOST);

	if (offset + length > most)
		length = most - offset;
	scribble(model->bytes + offset, length);
	if (pwrite(writer(file, number), model->bytes + offset, length, (off_t)offset) != (ssize_t)length)
		fail("pwrite");
	if (offset + length > model->size)
		model->size = offset + length;
}

static void do_write_mapped(struct file *file, unsigned int number)
{
	struct model *model = file->model;
	size_t offset, length, start;
	unsigned char *mapping;

	pick(model, &offset, &length);
	if (!length)
		return;
	start = page_down(offset);
	mapping = mmap(NULL, offset + length - start, PROT_READ | PROT_WRITE, MAP_SHARED, writer(file, number),
		       (off_t)start);
	if (mapping == MAP_FAILED)
		fail("mmap for writing");
	compare("a mapping for writing", number, mapping + (offset - start), offset, length);
	scribble(model->bytes + offset, length);
	memcpy(mapping + (offset - start), model->bytes + offset, length);
	if (below(4) == 0 && msync(mapping, offset + length - start, MS_SYNC))
		fail("msync");
	if (munmap(mapping, offset + length - start))
		fail("munmap");
}

/* Writes to a private mapping, which must not change the file. */
static void do_write_private(struct file *file, unsigned int number)
{
	struct model *model = file->model;
	size_t offset, length, start;
	unsigned char *mapping;

	pick(model, &offset, &length);
	if (!length)
		return;
	start = page_down(offset);
	mapping = mmap(NULL, offset + length - start, PROT_READ, MAP_PRIVATE, file->reader, (off_t)start);
	if (mapping == MAP_FAILED)
		fail("mmap private");
	compare("a private mapping", number, mapping + (offset - start), offset, length);
	if (mprotect(mapping, offset + length - start, PROT_READ | PROT_WRITE))
		fail("mprotect");
	for (size_t i = offset - start; i < offset - start + length; i += PAGE)
		mapping[i] ^= 0xff;
	for (size_t i = 0; i < length; i += PAGE)
		if (mapping[offset - start + i] != (unsigned char)~model->bytes[offset + i])
			wrong("a copy on write", number, offset + i, mapping[offset - start + i],
			      (unsigned char)~model->bytes[offset + i]);
	if (munmap(mapping, offset + length - start))
		fail("munmap");
}

static void do_truncate(struct file *file, unsigned int number)
{
	size_t size = below(4) ? most / 2 + below(most / 2) : below(most);

	if (ftruncate(writer(file, number), (off_t)size))
		fail("ftruncate");
	resize(file->model, size);
}

static void do_fallocate(struct file *file, unsigned int number, int mode)
{
	size_t offset, length;

	pick(file->model, &offset, &length);
	if (!length)
		return;
	if (fallocate(writer(file, number), mode | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)length)) {
		if (errno == EOPNOTSUPP)
			return;
		fail("fallocate");
	}
	memset(file->model->bytes + offset, 0, length);
}

/* Both files are locked. */
static void do_copy(unsigned int from, unsigned int to)
{
	struct model *source = files[from].model, *target = files[to].model;
	off_t in, out;
	size_t offset, length, left, place;

	pick(source, &offset, &length);
	place = below(most);
	/* Reflinks are of whole blocks. */
	if (below(2)) {
		offset = page_down(offset);
		place = page_down(place);
	}
	if (place + length > most)
		length = most - place;
	if (offset + length > source->size)
		length = source->size - offset;
	if (!length)
		return;
	in = (off_t)offset;
	out = (off_t)place;
	for (left = length; left;) {
		ssize_t part = copy_file_range(files[from].reader, &in, writer(&files[to], to), &out, left, 0);

		if (part <= 0)
			fail("copy_file_range");
		left -= (size_t)part;
	}
	memcpy(target->bytes + place, source->bytes + offset, length);
	if (place + length > target->size)
		target->size = place + length;
}

static void do_read(struct file *file, unsigned int number)
{
	static unsigned char buffer[MOST];
	size_t offset, length;

	pick(file->model, &offset, &length);
	if (pread(file->reader, buffer, length, (off_t)offset) != (ssize_t)length)
		fail("pread");
	compare("read", number, buffer, offset, length);
}

static void do_read_direct(struct file *file, unsigned int number)
{
	static unsigned char buffer[MOST] __attribute__((aligned(4096)));
	size_t size = file->model->size, offset = size ? page_down(below(size)) : 0, length = size - offset;
	int direct = open(path_of(number), O_RDONLY | O_DIRECT | O_CLOEXEC);

	if (direct < 0)
		fail("open directly");
	if (length > MOST)
		length = MOST;
	if (pread(direct, buffer, page_up(length), (off_t)offset) < (ssize_t)length)
		fail("pread directly");
	compare("a direct read", number, buffer, offset, length);
	close(direct);
}

/* Compares up to the end of the last page: the bytes after the end of the file are 0. */
static void do_read_mapped(struct file *file, unsigned int number, bool all)
{
	size_t offset, length, end;

	if (all) {
		offset = 0;
		length = file->model->size;
	} else {
		pick(file->model, &offset, &length);
	}
	end = offset + length;
	if (length && end == file->model->size)
		end = page_up(end);
	compare("its mapping", number, file->mapping + offset, offset, end - offset);
}

static void do_send(struct file *file, unsigned int number)
{
	static unsigned char buffer[16 * PAGE];
	size_t offset, length, got = 0;
	off_t from;
	int ends[2];

	pick(file->model, &offset, &length);
	if (length > sizeof(buffer) / 2)
		length = sizeof(buffer) / 2;
	if (!length)
		return;
	from = (off_t)offset;
	if (pipe2(ends, O_CLOEXEC))
		fail("pipe");
	while (got < length) {
		ssize_t sent = sendfile(ends[1], file->reader, &from, length - got);

		if (sent <= 0 || read(ends[0], buffer + got, (size_t)sent) != sent)
			fail("sendfile");
		got += (size_t)sent;
	}
	compare("sendfile", number, buffer, offset, length);
	close(ends[0]);
	close(ends[1]);
}

static void do_page_out(const struct file *file)
{
	size_t offset = page_down(below(most)), length = 16 * PAGE;

	if (offset + length > most)
		length = most - offset;
	if (madvise((void *)(uintptr_t)(file->mapping + offset), length, MADV_PAGEOUT))
		fail("MADV_PAGEOUT");
}

static void renew_mapping(struct file *file)
{
	if (munmap((void *)(uintptr_t)file->mapping, most))
		fail("munmap");
	map(file);
}

/* A small file's content follows from its number. */
static size_t small(uint64_t number, unsigned char *bytes)
{
	uint64_t state = number;
	size_t length = next_random(&state) % SMALL;

	for (size_t i = 0; i < length; i++)
		bytes[i] = (unsigned char)(state >> (i % 8 * 8)) + (unsigned char)(i >> 8);
	return length;
}

static uint64_t names[NAMES]; /* the number of each file; 0: it does not exist */

static char *name_of(unsigned int name, int which)
{
	static char paths[2][256];

	snprintf(paths[which], sizeof(paths[which]), "%s/own-%u/%u", directory, self, name);
	return paths[which];
}

static void create_name(unsigned int name)
{
	static unsigned char bytes[SMALL];
	uint64_t number = next_random(&seed) | 1;
	size_t length = small(number, bytes);
	int file = open(name_of(name, 0), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (file < 0 || write(file, bytes, length) != (ssize_t)length)
		fail(name_of(name, 0));
	close(file);
	names[name] = number;
}

static void check_name(unsigned int name)
{
	static unsigned char is[SMALL + 1], should[SMALL];
	size_t length = small(names[name], should);
	int file = open(name_of(name, 0), O_RDONLY | O_CLOEXEC);

	if (file < 0 || read(file, is, sizeof(is)) != (ssize_t)length || memcmp(is, should, length)) {
		fprintf(stderr, "process %u: %s differs from the model: %s\n", self, name_of(name, 0), strerror(errno));
		exit(1);
	}
	close(file);
}

static void check_absence(unsigned int name)
{
	if (!access(name_of(name, 0), F_OK)) {
		fprintf(stderr, "process %u: %s exists, but was removed\n", self, name_of(name, 0));
		exit(1);
	}
}

static void do_name(void)
{
	unsigned int name = (unsigned int)below(NAMES), other = (unsigned int)below(NAMES);

	if (!names[name]) {
		check_absence(name);
		create_name(name);
		return;
	}
	check_name(name);
	switch (below(4)) {
	case 0:
		if (unlink(name_of(name, 0)))
			fail("unlink");
		names[name] = 0;
		break;
	case 1:
		/* Both names have the same content. */
		if (name == other || names[other])
			break;
		if (link(name_of(name, 0), name_of(other, 1)))
			fail("link");
		names[other] = names[name];
		break;
	case 2:
		/* rename() does nothing if both are names of one file. */
		if (name == other || names[name] == names[other])
			break;
		if (rename(name_of(name, 0), name_of(other, 1)))
			fail("rename");
		names[other] = names[name];
		names[name] = 0;
		break;
	}
}

static enum operation pick_operation(void)
{
	static unsigned int sum;
	unsigned int at;

	if (!sum)
		for (int i = 0; i < OPERATIONS; i++)
			sum += operations[i].weight;
	at = (unsigned int)below(sum);
	for (int i = 0;; i++) {
		if (at < operations[i].weight)
			return (enum operation)i;
		at -= operations[i].weight;
	}
}

static void lock(unsigned int number)
{
	if ((errno = pthread_mutex_lock(&files[number].model->lock)))
		fail("a lock");
}

static void unlock(unsigned int number)
{
	pthread_mutex_unlock(&files[number].model->lock);
}

static void operate(enum operation operation)
{
	unsigned int number = (unsigned int)below(FILES), other = (unsigned int)below(FILES);
	struct file *file = &files[number];

	if (operation == NAME) {
		do_name();
		return;
	}
	if (operation == COPY && other == number)
		other = (number + 1) % FILES;
	lock(operation == COPY && other < number ? other : number);
	if (operation == COPY)
		lock(other < number ? number : other);
	switch (operation) {
	case WRITE:
		do_write(file, number);
		break;
	case WRITE_MAPPED:
		do_write_mapped(file, number);
		break;
	case WRITE_PRIVATE:
		do_write_private(file, number);
		break;
	case TRUNCATE:
		do_truncate(file, number);
		break;
	case PUNCH:
		do_fallocate(file, number, FALLOC_FL_PUNCH_HOLE);
		break;
	case ZERO:
		do_fallocate(file, number, FALLOC_FL_ZERO_RANGE);
		break;
	case COPY:
		do_copy(other, number);
		break;
	case SYNC:
		if (fsync(writer(file, number)))
			fail("fsync");
		break;
	case READ:
		do_read(file, number);
		break;
	case READ_DIRECT:
		do_read_direct(file, number);
		break;
	case READ_MAPPED:
		do_read_mapped(file, number, false);
		break;
	case READ_ALL:
		do_read_mapped(file, number, true);
		break;
	case SEND:
		do_send(file, number);
		break;
	case PAGE_OUT:
		do_page_out(file);
		break;
	case FORGET:
		posix_fadvise(file->reader, 0, 0, POSIX_FADV_DONTNEED);
		break;
	default:
		renew_mapping(file);
	}
	maybe_close(file);
	if (operation == COPY)
		unlock(other);
	unlock(number);
}

/* Opens the files anew. */
static void open_all(void)
{
	for (unsigned int i = 0; i < FILES; i++) {
		files[i].model = &shared->files[i];
		files[i].writer = -1;
		files[i].reader = open(path_of(i), O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
		if (files[i].reader < 0)
			fail(path_of(i));
		map(&files[i]);
	}
}

static void work(unsigned int number)
{
	char own[256];

	self = number;
	seed = 0x9e3779b97f4a7c15ull * (number + 1);
	snprintf(own, sizeof(own), "%s/own-%u", directory, self);
	if (mkdir(own, 0755))
		fail(own);
	open_all();
	while (!is_over()) {
		enum operation operation = pick_operation();

		operate(operation);
		shared->done[self][operation]++;
	}
	for (unsigned int i = 0; i < NAMES; i++)
		if (names[i])
			check_name(i);
		else
			check_absence(i);
	exit(0);
}

static const char *reclaim_file;

static void reclaim(unsigned int number)
{
	int file = open(reclaim_file, O_WRONLY | O_CLOEXEC);
	struct timespec pause = { .tv_nsec = 20000000 };

	self = number;
	if (file < 0)
		fail(reclaim_file);
	while (!is_over()) {
		/* EAGAIN: less was reclaimed than requested. */
		if (write(file, RECLAIM, strlen(RECLAIM)) < 0 && errno != EAGAIN && errno != EINTR)
			fail(reclaim_file);
		nanosleep(&pause, NULL);
	}
	exit(0);
}

static void start(void (*child)(unsigned int), unsigned int number)
{
	pid_t pid = new_child();

	if (pid == 0)
		child(number);
}

static void drop_caches(void)
{
	int file = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	if (file < 0 || write(file, "3", 1) != 1)
		printf("# caches were not dropped: %s\n", strerror(errno));
	if (file >= 0)
		close(file);
}

/* One line of the Test Anything Protocol. */
static bool result(int number, bool good, const char *name)
{
	printf("%sok %d %s\n", good ? "" : "not ", number, name);
	return good;
}

/* Compares the content on disk, after the caches are dropped. */
static bool is_kept(void)
{
	int status;
	pid_t pid;

	sync();
	drop_caches();
	fflush(stdout);
	pid = new_child();
	if (pid == 0) {
		self = MAX_PROCESSES;
		open_all();
		for (unsigned int i = 0; i < FILES; i++) {
			struct stat now;

			if (fstat(files[i].reader, &now) || (size_t)now.st_size != files[i].model->size)
				wrong("its size", i, 0, -1, -1);
			do_read_mapped(&files[i], i, true);
		}
		exit(0);
	}
	return waitpid(pid, &status, 0) == pid && status == 0;
}

/* Prints how often each operation was done; false if one never was. */
static bool report(unsigned int processes)
{
	bool all = true;

	for (int i = 0; i < OPERATIONS; i++) {
		unsigned long count = 0;

		for (unsigned int process = 0; process < processes; process++)
			count += shared->done[process][i];
		printf("# %lu times: %s\n", count, operations[i].name);
		all = all && count;
	}
	return all;
}

static void make_shared(void)
{
	pthread_mutexattr_t attributes;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		fail("mmap");
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	for (int i = 0; i < FILES; i++) {
		struct model *model = &shared->files[i];

		pthread_mutex_init(&model->lock, &attributes);
		model->bytes = mmap(NULL, most, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (model->bytes == MAP_FAILED)
			fail("mmap");
	}
}

int main(int argc, char **argv)
{
	size_t processes, seconds, bad = 0;
	bool passed;

	if (argc != 5 && argc != 6)
		usage("fileload DIRECTORY SECONDS PROCESSES BYTES [FILE]");
	directory = argv[1];
	seconds = number(argv[2]);
	processes = number(argv[3]);
	most = page_up(number(argv[4]));
	reclaim_file = argv[5];
	if (processes > MAX_PROCESSES || most < 2 * MOST)
		usage("fileload DIRECTORY SECONDS PROCESSES BYTES [FILE]: at most 16 processes, at least 128K");
	clock_gettime(CLOCK_MONOTONIC, &last);
	last.tv_sec += (time_t)seconds;
	make_shared();
	for (unsigned int i = 0; i < processes; i++)
		start(work, i);
	if (reclaim_file)
		start(reclaim, MAX_PROCESSES);
	signal(SIGTERM, SIG_IGN);
	for (size_t i = 0; i < processes + !!reclaim_file; i++) {
		int status;

		if (wait(&status) < 0)
			fail("wait");
		if (!status)
			continue;
		fprintf(stderr, "a process ended with %#x\n", (unsigned int)status);
		/* The other processes may wait for a lock that it held. */
		if (!bad++)
			kill(0, SIGTERM);
	}
	printf("1..3\n");
	passed = result(1, !bad, "what is read is what was written");
	passed &= result(2, report((unsigned int)processes), "each operation was done");
	passed &= result(3, !bad && is_kept(), "what is read from the disk is what was written");
	return !passed;
}
