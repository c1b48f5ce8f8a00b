// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Changes files in a directory for ever, and tells each step on the console, for `toll-lab power-cuts`.
 *
 *     persist DIRECTORY VERSION
 *
 * The files are `c` and `d`. Each version is a new file: its first half is written, the other is stored through a
 * mapping and made persistent; then it is sealed and gets its name. Each seventh version removes the file instead.
 */
#include "util.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { PIECE = 123457 };

static int console;

static void say(const char *what, const char *name, unsigned long version)
{
	if (dprintf(console, "power-cuts: %s %s %lu\n", what, name, version) < 0)
		fail("/dev/console");
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
	size_t size = version * 3238871 % 3000000 + 1;
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

int main(int argc, char **argv)
{
	unsigned long version;

	if (argc != 3)
		usage("persist DIRECTORY VERSION");
	console = open("/dev/console", O_WRONLY | O_CLOEXEC);
	if (console < 0 || chdir(argv[1]))
		fail(argv[1]);
	/* What an earlier cut has left. */
	unlink("new");
	unlink("directory/link");
	unlink("other/link");
	rmdir("directory");
	rmdir("other");
	for (version = number(argv[2]);; version++) {
		const char *name = version % 2 ? "d" : "c";
		unsigned long made = version % 7 ? version : 0;

		say("begin", name, made);
		if (made)
			make(name, made);
		else
			unlink(name);
		say("done", name, made);
		if (made)
			change_names(name);
	}
}
