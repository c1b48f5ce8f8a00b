// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Shared buffers of a database with a process for each connection: all processes inherit one writable mapping.
 *
 *     shared KIND BYTES PROCESSES SECTION
 *
 * Kinds: `huge` a file of tmpfs with huge pages (mounted at /huge), `memfd`, and `morsel`, an open one (of what is
 * mounted at /morsel).
 *
 * Section SECTION-fill: PROCESSES processes write all pages of the new buffer, in turn, each on a CPU of its own if there
 * are enough. Section SECTION: as many new processes read each page, check it, and write to it. Notes the number of
 * pages and processes, and the size of page tables while all processes exist (PageTables of /proc/meminfo), less that
 * of as many processes that do not touch the buffer.
 */
#include "page_tables.h"
#include "section.h"

static char *memory;
static size_t length;
static int processes;

static uint64_t *word_at(size_t page, int process)
{
	return (uint64_t *)(memory + page * PAGE) + process;
}

static void idle(int process)
{
	(void)process;
}

static void fill(int process)
{
	for (size_t page = process; page < length / PAGE; page += processes)
		*word_at(page, 0) = page + 1;
}

static void serve(int process)
{
	for (size_t page = 0; page < length / PAGE; page++) {
		if (__atomic_load_n(word_at(page, 0), __ATOMIC_RELAXED) != page + 1) {
			fprintf(stderr, "page %zu: not what another process wrote\n", page);
			exit(1);
		}
		__atomic_add_fetch(word_at(page, 1 + process), 1, __ATOMIC_RELAXED);
	}
}

/* Returns what the page tables of processes take that do this, until they end. */
static double with_processes(void (*work)(int process))
{
	struct gate gate = gate_new();
	double before = page_table_bytes();

	for (int i = 0; i < processes; i++) {
		if (new_child())
			continue;
		pin(i % sysconf(_SC_NPROCESSORS_ONLN));
		work(i);
		gate_wait(&gate);
		exit(0);
	}
	return page_tables_of(&gate, processes, before);
}

static void measure(const char *name, void (*work)(int process))
{
	double without = with_processes(idle), with;

	section_begin(name);
	with = with_processes(work);
	section_note("pages", length / PAGE);
	section_note("processes", processes);
	section_note("page_table_bytes", with - without);
	section_end();
}

static int buffer(const char *kind)
{
	if (!strcmp(kind, "memfd"))
		return memfd_create("buffers", MFD_CLOEXEC);
	return open(!strcmp(kind, "huge") ? "/huge" : "/morsel", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

int main(int argc, char **argv)
{
	char name[64];
	int fd;

	if (argc != 5)
		usage("shared huge|memfd|morsel BYTES PROCESSES SECTION");
	length = number(argv[2]);
	processes = number(argv[3]);
	if (processes > (int)(PAGE / 8 - 1))
		usage("shared: at most 511 processes");
	fd = buffer(argv[1]);
	if (fd < 0 || ftruncate(fd, length))
		fail(argv[1]);
	memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (memory == MAP_FAILED)
		fail("mmap");
	snprintf(name, sizeof(name), "%s-fill", argv[4]);
	measure(name, fill);
	measure(argv[4], serve);
	for (size_t page = 0; page < length / PAGE; page++)
		for (int i = 0; i < processes; i++)
			if (*word_at(page, 1 + i) != 1)
				fail("a page that a process did not write");
	return 0;
}
