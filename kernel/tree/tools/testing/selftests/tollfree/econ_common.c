// SPDX-License-Identifier: GPL-2.0-only
/* What several files of the program econ need. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "econ.h"

/* A profile of this program. */
/* Duration of the run that profiles are of: so long that it does not matter. */
#define LONG_RUN	1000000000000UL

unsigned long profiled_run_ns = LONG_RUN;

void profile_of(const char *rows, char *text)
{
	int nr = 0;

	for (const char *c = rows; *c; c++)
		nr += *c == '\n';
	sprintf(text, "mm_profile 1\nprogram econ\nrun %lu\n%send %d\n", profiled_run_ns, rows,
		nr);
}

int write_to(const char *path, const char *text, size_t length)
{
	int fd = open(path, O_RDWR), err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, length) != (ssize_t)length)
		err = -errno;
	close(fd);
	return err;
}

/* Give this process a profile with the given number of rows. */
bool give(const char *rows)
{
	char text[4096];

	profile_of(rows, text);
	return !write_to(PROFILE, text, strlen(text));
}

void read_from(const char *path, char *text, size_t length)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read(fd, text, length - 1);

	text[n < 0 ? 0 : n] = '\0';
	close(fd);
}

/* One of the five counters of a model, of the machine. */
long stat_of(const char *model, const char *number)
{
	char path[128], text[256], *at;

	snprintf(path, sizeof(path), SYSFS "stats/%s", model);
	read_from(path, text, sizeof(text));
	at = strstr(text, number);
	return at ? atol(at + strlen(number)) : -1;
}

/* A field of a mapping in smaps, in MiB; -1 if it does not exist. */
long smaps_mib(const void *memory, const char *format)
{
	FILE *smaps = fopen("/proc/self/smaps", "r");
	unsigned long begin, end, kib;
	bool is_it = false;
	long found = -1;
	char line[256];

	while (smaps && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			is_it = (unsigned long)memory >= begin && (unsigned long)memory < end;
		else if (is_it && sscanf(line, format, &kib) == 1)
			found = kib >> 10;
	}
	if (smaps)
		fclose(smaps);
	return found;
}

/* A number in /proc/vmstat: "\nNAME ". */
long vmstat_of(const char *name)
{
	char text[16384], *at;

	read_from("/proc/vmstat", text, sizeof(text));
	at = strstr(text, name);
	return at ? atol(at + strlen(name)) : -1;
}

/* Size of the huge pages in a mapping, in MiB. */
long huge_in(const void *memory)
{
	return smaps_mib(memory, "AnonHugePages: %lu");
}

char *map(size_t size)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* A plain store: emulators may read before they exchange. */
void touch(char *memory, size_t size)
{
	for (size_t at = 0; at < size; at += PAGE)
		__atomic_store_n(&memory[at], 1, __ATOMIC_RELAXED);
}

char self[PATH_MAX];

/* Execute this program by a path, with a profile if there are rows. */
int run_path(const char *path, const char *rows, const char *part, uid_t uid)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		/* Each node keeps its own blocks. */
		stay_on(0);
		if (rows && !give(rows))
			_exit(210);
		if (uid && setuid(uid))
			_exit(211);
		execl(path, path, "-", part, NULL);
		_exit(212);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 213;
}

int run(const char *rows, const char *part)
{
	return run_path(self, rows, part, 0);
}

void keep(struct kept *files, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		read_from(files[i].path, files[i].text, sizeof(files[i].text));
		CHECK(*files[i].text);
	}
}

void put_back(struct kept *files, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		CHECK(write_text(files[i].path, files[i].text));
}

time_t now(void)
{
	struct timespec it;

	clock_gettime(CLOCK_MONOTONIC, &it);
	return it.tv_sec;
}

/* CPU time of reaped children, in milliseconds. */
double children_ran(void)
{
	struct rusage all;

	if (!CHECK(!getrusage(RUSAGE_CHILDREN, &all)))
		return 0;
	return (all.ru_utime.tv_sec + all.ru_stime.tv_sec) * 1e3 +
	       (all.ru_utime.tv_usec + all.ru_stime.tv_usec) / 1e3;
}

long memory_of(const char *name)
{
	char text[4096], *at;

	read_from("/proc/meminfo", text, sizeof(text));
	at = strstr(text, name);
	return at ? atol(at + strlen(name)) >> 10 : -1;
}

/* The process ID of a kernel thread, or 0. */
pid_t thread_of(const char *name)
{
	char path[64], text[64];

	for (pid_t pid = 2; pid < 1000; pid++) {
		snprintf(path, sizeof(path), "/proc/%d/comm", pid);
		read_from(path, text, sizeof(text));
		text[strcspn(text, "\n")] = '\0';
		if (!strcmp(text, name))
			return pid;
	}
	return 0;
}

/* Number of memory nodes; more than two count as two. */
int memory_nodes(void)
{
	return access("/sys/devices/system/node/node1", F_OK) ? 1 : 2;
}

/* Each line as a comment of TAP. */
void print_file(const char *path)
{
	char text[4096];

	read_from(path, text, sizeof(text));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		ksft_print_msg("%s\n", line);
}

/* Clear losses, credit and debts of all nodes. */
void forget_ledgers(void)
{
	CHECK(write_text(SYSFS "mode", "off") && write_text(SYSFS "mode", "on"));
}

/* Mount the memory cgroups, as version 2, in a new directory. */
void mount_groups(const char *directory)
{
	char path[PATH_MAX];

	mkdir(directory, 0755);
	CHECK(!mount("none", directory, "cgroup2", 0, NULL) || errno == EBUSY);
	snprintf(path, sizeof(path), "%s/cgroup.subtree_control", directory);
	write_text(path, "+memory");
}

void unmount_groups(const char *directory)
{
	umount(directory);
	rmdir(directory);
}

/* Costs of a block by compaction of a zone, and by moving pages that are known. */
struct kept costs_of_blocks[NR_COSTS_OF_BLOCKS] = {
	{ .path = SYSFS "costs/compact_block" },
	{ .path = SYSFS "costs/move_page" },
};

bool let_blocks_cost(const char *compact_block, const char *move_page)
{
	return write_text(costs_of_blocks[0].path, compact_block) &&
	       write_text(costs_of_blocks[1].path, move_page);
}
