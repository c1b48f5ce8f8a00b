// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases of userfaultfd, and of PAGEMAP_SCAN, which needs one. */
#ifndef STALE_UFFD_H
#define STALE_UFFD_H

#include "stale_memory.h"
#include "uffd.h"

static int uffd, scan_fd;

static void uffd_prepare(uint64_t features)
{
	uffd = uffd_new(features);
	if (uffd < 0)
		not_possible("userfaultfd with features %#llx: %s", (unsigned long long)features, strerror(errno));
}

/* Makes what was written to writable again, and so wakes the toucher. */
static void *uffd_handler(void *unused)
{
	struct uffd_msg message;

	pin(0);
	while (read(uffd, &message, sizeof(message)) == sizeof(message))
		if (uffd_protect(uffd, AREA, LENGTH, false) && errno != ENOENT)
			fail("UFFDIO_WRITEPROTECT");
	return unused;
}

static void uffd_wp_prepare(void)
{
	pthread_t id;

	uffd_prepare(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
	if ((errno = pthread_create(&id, NULL, uffd_handler, NULL)))
		fail("pthread_create");
}

static void uffd_wp_round(void)
{
	char *region = filled();

	if (uffd_register(uffd, region, LENGTH, UFFDIO_REGISTER_MODE_WP))
		fail("UFFDIO_REGISTER");
	touch(region, LENGTH, WRITE | ON);
	for (int i = 0; i < 4; i++) {
		if (uffd_protect(uffd, region, LENGTH, true))
			fail("UFFDIO_WRITEPROTECT");
		settle();
	}
	finish(region, LENGTH);
}

static void uffd_move_prepare(void)
{
	uffd_prepare(UFFD_FEATURE_MOVE);
}

/* The pages move away from the toucher, and are then unmapped. */
static void uffd_move_round(void)
{
	char *region = filled(), *target = map_at(ASIDE, LENGTH);

	if (uffd_register(uffd, target, LENGTH, UFFDIO_REGISTER_MODE_MISSING))
		fail("UFFDIO_REGISTER");
	touch(region, LENGTH, any_use());
	if (uffd_move(uffd, target, region, LENGTH))
		fail("UFFDIO_MOVE");
	settle();
	unmap(target, LENGTH);
	renew_and_finish(region, LENGTH);
}

static void pagemap_wp_prepare(void)
{
	char *region = map_at(AREA, PAGE);

	uffd_prepare(UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED);
	scan_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (scan_fd < 0)
		fail("/proc/self/pagemap");
	if (uffd_register(uffd, region, PAGE, UFFDIO_REGISTER_MODE_WP))
		fail("UFFDIO_REGISTER");
	if (pagemap_protect(scan_fd, region, PAGE) < 0)
		not_possible("PAGEMAP_SCAN: %s", strerror(errno));
	unmap(region, PAGE);
}

/* The kernel itself makes a page writable again, and notes the write. */
static void pagemap_wp_round(void)
{
	char *region = map_at(AREA, LENGTH);

	if (uffd_register(uffd, region, LENGTH, UFFDIO_REGISTER_MODE_WP))
		fail("UFFDIO_REGISTER");
	touch(fill(region, LENGTH), LENGTH, WRITE | ON);
	for (int i = 0; i < 4; i++) {
		if (pagemap_protect(scan_fd, region, LENGTH) < 0)
			fail("PAGEMAP_SCAN");
		settle();
	}
	finish(region, LENGTH);
}

#endif
