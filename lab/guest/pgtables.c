// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Processes that all map one buffer in shared memory and read each page of it.
 *
 *     pgtables BYTES PROCESSES
 *
 * Notes what page tables take when all are there (PageTables of /proc/meminfo).
 */
#include "section.h"

static double page_table_bytes(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	unsigned long kib = 0;
	char line[128];

	if (!file)
		fail("/proc/meminfo");
	while (fgets(line, sizeof(line), file) && sscanf(line, "PageTables: %lu", &kib) != 1)
		;
	fclose(file);
	return kib * 1024.0;
}

static _Noreturn void read_all(const struct gate *gate, int fd, size_t length)
{
	volatile const char *memory = mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0);

	if (memory == MAP_FAILED)
		fail("mmap");
	for (size_t at = 0; at < length; at += PAGE)
		(void)memory[at];
	gate_wait(gate);
	exit(0);
}

int main(int argc, char **argv)
{
	int processes, fd = memfd_create("buffer", MFD_CLOEXEC);
	struct gate gate = gate_new();
	size_t length;
	double before;
	char *memory;

	if (argc != 3)
		usage("pgtables BYTES PROCESSES");
	length = number(argv[1]);
	processes = number(argv[2]);
	if (fd < 0 || ftruncate(fd, length))
		fail("memfd");
	memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		fail("mmap");
	memset(memory, 1, length);
	munmap(memory, length);
	before = page_table_bytes();
	section_begin("main");
	for (int i = 0; i < processes; i++) {
		pid_t child = fork();

		if (child < 0)
			fail("fork");
		if (child == 0)
			read_all(&gate, fd, length);
	}
	gate_gather(&gate, processes);
	section_note("page_table_bytes", page_table_bytes() - before);
	gate_open(&gate, processes);
	wait_for_children(processes);
	section_end();
	return 0;
}
