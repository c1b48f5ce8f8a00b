// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * First touches of one object by many threads: each writes to every page of its own part once, in order, on a CPU of
 * its own.
 *
 *     scatter KIND THREADS BYTES SECTION [apart]
 *
 * Kinds: `anonymous` memory, `memfd` (page cache), `morsel` (an open one of what is mounted at /morsel). All threads
 * touch through one mapping, or, `apart`, each through its own. Notes the number of 4 KiB pages, whatever the size of
 * the entries that map them.
 */
#include "section.h"

static size_t threads, length;
static int fd, is_apart;
static char *memory;
static pthread_barrier_t begun;

static char *map_part(size_t begin, size_t part)
{
	char *mapped = fd < 0 ? reserve(part) : mmap(NULL, part, PROT_READ | PROT_WRITE, MAP_SHARED, fd, begin);

	if (mapped == MAP_FAILED)
		fail("mmap");
	return mapped;
}

static void *touch(void *number)
{
	size_t part = length / threads, begin = (size_t)number * part;
	char *from = is_apart ? map_part(begin, part) : memory + begin;

	pin((size_t)number);
	pthread_barrier_wait(&begun);
	for (size_t at = 0; at < part; at += PAGE)
		from[at] = 1;
	return NULL;
}

static int object(const char *kind)
{
	int fd;

	if (!strcmp(kind, "anonymous"))
		return -1;
	fd = !strcmp(kind, "memfd") ? memfd_create("object", MFD_CLOEXEC) :
				      open("/morsel", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, length))
		fail(kind);
	return fd;
}

int main(int argc, char **argv)
{
	pthread_t ids[MAX_THREADS];

	if (argc != 5 && (argc != 6 || strcmp(argv[5], "apart")))
		usage("scatter anonymous|memfd|morsel THREADS BYTES SECTION [apart]");
	threads = number(argv[2]);
	length = number(argv[3]);
	if (threads > MAX_THREADS || length % (threads * REGION)) {
		fprintf(stderr, "scatter: at most 64 threads, and 2 MiB for each\n");
		return 2;
	}
	fd = object(argv[1]);
	is_apart = argc == 6;
	if (!is_apart)
		memory = map_part(0, length);
	if ((errno = pthread_barrier_init(&begun, NULL, threads + 1)))
		fail("barrier");
	for (size_t i = 0; i < threads; i++)
		if ((errno = pthread_create(&ids[i], NULL, touch, (void *)i)))
			fail("pthread_create");
	section_begin(argv[4]);
	pthread_barrier_wait(&begun);
	for (size_t i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	section_note("touched_pages", length / PAGE);
	section_note("threads", threads);
	section_end();
	return 0;
}
