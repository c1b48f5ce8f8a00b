// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Processes that all map one buffer in shared memory and read all of its pages.
 *
 *     pgtables KIND BYTES PROCESSES SECTION
 *
 * Kinds: `memfd`, `open` and `sealed`, files of morselfs (mounted at /morsel). Only the first page of each 2 MiB of the
 * buffer exists, which takes the same number of page tables as a full one.
 *
 * Notes the size of page tables while all processes exist (PageTables of /proc/meminfo), less that of the same number of
 * processes without the mapping, and the difference for each process.
 */
#include "page_tables.h"
#include "section.h"

static const char *kind;
static size_t length;

static char *map_all(int fd, int protection)
{
	char *memory = mmap(NULL, length, protection, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	return memory;
}

static int buffer(void)
{
	int is_memfd = !strcmp(kind, "memfd");
	int fd = is_memfd ? memfd_create("buffer", MFD_CLOEXEC) : open("/morsel", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	char *memory;

	if (fd < 0 || ftruncate(fd, length))
		fail(kind);
	memory = map_all(fd, PROT_READ | PROT_WRITE);
	for (size_t at = 0; at < length; at += REGION)
		memory[at] = 1;
	munmap(memory, length);
	if (!strcmp(kind, "sealed") && fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE))
		fail("F_SEAL_WRITE");
	return fd;
}

static _Noreturn void be_there(const struct gate *gate, int fd)
{
	volatile const char *memory = fd < 0 ? NULL : map_all(fd, PROT_READ);

	for (size_t at = 0; memory && at < length; at += REGION)
		(void)memory[at];
	gate_wait(gate);
	exit(0);
}

/* What the page tables of processes take that map it, or nothing. */
static double with_processes(int fd, int processes)
{
	struct gate gate = gate_new();
	double before = page_table_bytes();

	for (int i = 0; i < processes; i++) {
		pid_t child = new_child();

		if (child == 0)
			be_there(&gate, fd);
	}
	return page_tables_of(&gate, processes, before);
}

int main(int argc, char **argv)
{
	double without, with;
	int processes, fd;

	if (argc != 5)
		usage("pgtables memfd|open|sealed BYTES PROCESSES SECTION");
	kind = argv[1];
	length = number(argv[2]);
	processes = number(argv[3]);
	fd = buffer();
	without = with_processes(-1, processes);
	section_begin(argv[4]);
	with = with_processes(fd, processes);
	section_note("bytes", length);
	section_note("processes", processes);
	section_note("page_table_bytes", with - without);
	section_note("page_table_bytes_each", (with - without) / processes);
	section_end();
	return 0;
}
