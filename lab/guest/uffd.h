// SPDX-License-Identifier: MIT OR Apache-2.0
/* userfaultfd and PAGEMAP_SCAN, with what the headers of older systems lack. */
#ifndef UFFD_H
#define UFFD_H

#include "util.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif
#ifndef UFFD_FEATURE_MOVE
#define UFFD_FEATURE_MOVE (1 << 16)
#endif

/* As struct uffdio_move and UFFDIO_MOVE since Linux 6.8. */
struct move_request {
	uint64_t to, from, length, mode;
	int64_t moved;
};

#define MOVE_ALLOWS_HOLES 2
#define MOVE_REQUEST _IOWR(UFFDIO, 0x05, struct move_request)

/* As struct pm_scan_arg and PAGEMAP_SCAN since Linux 6.7. */
struct scan_request {
	uint64_t size, flags, start, end, walk_end, ranges, ranges_length, most_pages;
	uint64_t inverted, all_of, any_of, returned;
};

#define SCAN_REQUEST _IOWR('f', 16, struct scan_request)

enum { SCAN_PROTECT = 1, SCAN_IS_WRITTEN = 2 };

/* -1 with errno if the kernel lacks it or one of the features. */
static inline int uffd_new(uint64_t features)
{
	struct uffdio_api api = { .api = UFFD_API, .features = features };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0 && ioctl(fd, UFFDIO_API, &api)) {
		close(fd);
		return -1;
	}
	return fd;
}

static inline int uffd_register(int fd, char *start, size_t length, uint64_t mode)
{
	struct uffdio_register request = { .range = { (uintptr_t)start, length }, .mode = mode };

	return ioctl(fd, UFFDIO_REGISTER, &request);
}

static inline int uffd_protect(int fd, char *start, size_t length, bool on)
{
	struct uffdio_writeprotect request = { .range = { (uintptr_t)start, length } };

	if (on)
		request.mode = UFFDIO_WRITEPROTECT_MODE_WP;
	return ioctl(fd, UFFDIO_WRITEPROTECT, &request);
}

static inline int uffd_move(int fd, char *to, char *from, size_t length)
{
	struct move_request request = {
		.to = (uintptr_t)to,
		.from = (uintptr_t)from,
		.length = length,
		.mode = MOVE_ALLOWS_HOLES,
	};

	return ioctl(fd, MOVE_REQUEST, &request);
}

/* Write-protects the pages that were written to; the number of ranges, or -1. */
static inline int pagemap_protect(int fd, char *start, size_t length)
{
	struct scan_request request = {
		.size = sizeof(request),
		.flags = SCAN_PROTECT,
		.start = (uintptr_t)start,
		.end = (uintptr_t)start + length,
		.all_of = SCAN_IS_WRITTEN,
		.returned = SCAN_IS_WRITTEN,
	};

	return ioctl(fd, SCAN_REQUEST, &request);
}

#endif
