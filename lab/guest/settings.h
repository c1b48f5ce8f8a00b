// SPDX-License-Identifier: MIT OR Apache-2.0
/* Settings of a guest's kernel: files with one value, swap to compressed memory, a cgroup. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "util.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/swap.h>

#define ZRAM_SIZE "67108864"
#define ZRAM_PAGES (67108864 / 4096)
#define ZRAM_DEVICE "/dev/zram0"
#define ZRAM_SIZE_FILE "/sys/block/zram0/disksize"

#define CGROUP "/cgroup"
#define GROUP CGROUP "/lab"
#define GROUP_RECLAIM GROUP "/memory.reclaim"

#define HUGETLB_POOL "/proc/sys/vm/nr_hugepages"
#define KSM "/sys/kernel/mm/ksm"
#define KSM_RUN KSM "/run"

/* Writes a value to a file; false with errno. */
static inline bool set(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool written;

	if (fd < 0)
		return false;
	written = write(fd, value, strlen(value)) == (ssize_t)strlen(value);
	close(fd);
	return written;
}

static inline bool set_number(const char *path, unsigned long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lu", value);
	return set(path, text);
}

/* Reads the start of a file; false if it cannot be read or is empty. */
static inline bool get(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return false;
	length = read(fd, text, size - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	return length > 0;
}

/* The number in a file; -1 without one. */
static inline long get_number(const char *path)
{
	char text[64];

	return get(path, text, sizeof(text)) ? strtol(text, NULL, 10) : -1;
}

/* Writes the first page of a swap device. */
static inline bool write_swap_header(const char *device, unsigned int pages)
{
	static char page[PAGE];
	unsigned int header[] = { 1, pages - 1 };  /* version, and number of the last page */
	int fd = open(device, O_WRONLY | O_CLOEXEC);
	bool written;

	if (fd < 0)
		return false;
	memcpy(page + 1024, header, sizeof(header));
	memcpy(page + PAGE - 10, "SWAPSPACE2", 10);
	written = write(fd, page, PAGE) == (ssize_t)PAGE && !fsync(fd);
	close(fd);
	return written;
}

/* Swap to compressed memory, unless it is on already; false with errno. */
static inline bool swap_on(void)
{
	if (get_number(ZRAM_SIZE_FILE) == 0 &&
	    (!set(ZRAM_SIZE_FILE, ZRAM_SIZE) || !write_swap_header(ZRAM_DEVICE, ZRAM_PAGES)))
		return false;
	return !swapon(ZRAM_DEVICE, 0) || errno == EBUSY;
}

/* Puts this process into a cgroup of its own that can be asked to reclaim; false with errno. */
static inline bool group_enter(void)
{
	mkdir(CGROUP, 0755);
	if (access(CGROUP "/cgroup.procs", F_OK) && mount("none", CGROUP, "cgroup2", 0, NULL))
		return false;
	if (!set(CGROUP "/cgroup.subtree_control", "+memory") || (mkdir(GROUP, 0755) && errno != EEXIST))
		return false;
	return !access(GROUP_RECLAIM, W_OK) && set(GROUP "/cgroup.procs", "0");
}

#endif
