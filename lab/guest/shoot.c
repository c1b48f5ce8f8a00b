// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Two threads on two CPUs: one write-protects a page and makes it writable again, while the other one runs. Both calls
 * flush, and interrupt the other CPU unless it is idle at that moment.
 *
 *     shoot SECTION TIMES
 */
#include "section.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_int is_running, is_over;

static void *spin(void *unused)
{
	pin(1);
	atomic_store(&is_running, 1);
	while (!atomic_load(&is_over))
		;
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t other;
	char *page;
	size_t times;

	if (argc != 3)
		usage("shoot SECTION TIMES");
	times = number(argv[2]);
	page = reserve(PAGE);
	*page = 1;
	pin(0);
	if ((errno = pthread_create(&other, NULL, spin, NULL)))
		fail("pthread_create");
	while (!atomic_load(&is_running))
		;
	section_begin(argv[1]);
	for (size_t i = 0; i < times; i++) {
		if (mprotect(page, PAGE, PROT_READ) || mprotect(page, PAGE, PROT_READ | PROT_WRITE))
			fail("mprotect");
		*page = 1;
	}
	section_end();
	atomic_store(&is_over, 1);
	pthread_join(other, NULL);
	return 0;
}
