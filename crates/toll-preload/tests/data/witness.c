/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Preloaded before the library under test: records each huge-page advice, as "start end advice", in
 * the file named by WITNESS.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int madvise(void *start, size_t length, int advice)
{
	const char *path = getenv("WITNESS");
	char line[128];
	int fd, n;

	if (path && (advice == MADV_HUGEPAGE || advice == MADV_NOHUGEPAGE)) {
		fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, 0600);
		n = snprintf(line, sizeof line, "%lu %lu %d\n", (unsigned long)start,
			     (unsigned long)start + length, advice);
		syscall(SYS_write, fd, line, n);
		syscall(SYS_close, fd);
	}
	return syscall(SYS_madvise, start, length, advice);
}
