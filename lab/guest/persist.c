// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Changes files in a directory, and tells each step on the console and to a recording of stores, for `toll-lab
 * power-cuts` and `toll-lab crash-states --kernel`.
 *
 *     persist DIRECTORY VERSION [LAST]
 *
 * The files are `c` and `d`. Each version is a new file: its first half is written, the other is stored through a
 * mapping and made persistent; then it is sealed and gets its name. Each seventh version removes the file instead.
 * Each third version is a number in two pages of `l`, which stays open: one is written, the other is stored through a
 * mapping, and each is made persistent. It ends after the version LAST, or never.
 */
#include "toll.h"
#include "util.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { PIECE = 123457 };

static int console;

static void say(const char *what, const char *name, unsigned long version)
{
	if (dprintf(console, "power-cuts: %s %s %lu\n", what, name, version) < 0)
		fail("/dev/console");
	toll_step((unsigned long)*what << 8 | (unsigned char)*name, version);
}

static void store_line(char *memory, size_t from, size_t to, const char *line)
{
	size_t length = strlen(line);

	for (; from < to; from++)
		memory[from] = line[from % length];
}

static void write_half(int fd, size_t length, const char *line)
{
	static char piece[PIECE + 64];
	size_t unit = PIECE / strlen(line) * strlen(line);

	store_line(piece, 0, unit, line);
	for (size_t at = 0; at < length; at += unit) {
		size_t part = length - at < unit ? length - at : unit;

		if (write(fd, piece, part) != (ssize_t)part)
			fail("write");
	}
}

static void map_half(int fd, size_t from, size_t to, const char *line)
{
	char *memory;

	if (ftruncate(fd, to))
		fail("ftruncate");
	memory = shared_file(fd, to, PROT_READ | PROT_WRITE);
	store_line(memory, from, to, line);
	if (msync(memory, to, MS_SYNC) || munmap(memory, to))
		fail("msync");
}

/* Other names come and go meanwhile. */
static void change_names(const char *name)
{
	if (mkdir("directory", 0700) || link(name, "directory/link") || rename("directory", "other") ||
	    unlink("other/link") || rmdir("other"))
		fail("names");
}

static void make(const char *name, unsigned long version)
{
	size_t size = version * 3238871 % (version % 5 ? 100000 : 3000000) + 1;
	char line[64];
	int fd;

	snprintf(line, sizeof(line), "%s %lu\n", name, version);
	fd = open("new", O_RDWR | O_CREAT | O_EXCL, 0400);
	if (fd < 0)
		fail("new");
	write_half(fd, size / 2, line);
	map_half(fd, size / 2, size, line);
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		fail("F_ADD_SEALS");
	close(fd);
	if (rename("new", name))
		fail("rename");
}

static void log_version(const char *name, unsigned long version)
{
	int fd = open(name, O_RDWR | O_CREAT, 0600);
	char *memory;

	if (fd < 0 || ftruncate(fd, 2 * PAGE))
		fail(name);
	if (pwrite(fd, &version, sizeof(version), 0) != sizeof(version) || fsync(fd))
		fail("fsync");
	memory = shared_file(fd, 2 * PAGE, PROT_READ | PROT_WRITE);
	*(volatile unsigned long *)(memory + PAGE) = version;
	if (msync(memory + PAGE, PAGE, MS_SYNC) || munmap(memory, 2 * PAGE))
		fail("msync");
	close(fd);
}

static void step(unsigned long version)
{
	const char *name = version % 2 ? "d" : "c";
	bool removes = version % 7 == 0, logs = !removes && version % 3 == 0;

	if (logs)
		name = "l";
	say("begin", name, removes ? 0 : version);
	if (removes)
		unlink(name);
	else if (logs)
		log_version(name, version);
	else
		make(name, version);
	say("done", name, removes ? 0 : version);
	if (!removes && !logs)
		change_names(name);
}

int main(int argc, char **argv)
{
	unsigned long version, last;

	if (argc != 3 && argc != 4)
		usage("persist DIRECTORY VERSION [LAST]");
	console = open("/dev/console", O_WRONLY | O_CLOEXEC);
	if (console < 0 || chdir(argv[1]))
		fail(argv[1]);
	/* What an earlier cut has left. */
	unlink("new");
	unlink("directory/link");
	unlink("other/link");
	rmdir("directory");
	rmdir("other");
	last = argc == 4 ? number(argv[3]) : ~0ul;
	for (version = number(argv[2]); version <= last; version++)
		step(version);
	return 0;
}
