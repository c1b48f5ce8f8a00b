// SPDX-License-Identifier: GPL-2.0-only
/* Files, mappings and processes of a test. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "luf.h"

int file = -1;
int kept = -1;
int *elsewhere;
pid_t sharer;
const char *const names[] = { "luf-a", "luf-b" };

void make_file(const char *name, const void *content, size_t size)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || write(fd, content, size) != (ssize_t)size || fsync(fd))
		ksft_exit_fail_msg("%s: %s\n", name, strerror(errno));
	close(fd);
}

void fill(const char *name, int value, size_t size)
{
	int words[PAGE / sizeof(int)];

	for (size_t i = 0; i < PAGE / sizeof(int); i++)
		words[i] = value;
	make_file(name, words, size);
}

void *reclaimable(void *at)
{
	must(at != MAP_FAILED && !munlock(at, PAGE), "mmap");
	return at;
}

void *map(int protection, int flags)
{
	fill(names[0], OLD, PAGE);
	fill(names[1], OTHER, PAGE);
	file = open(names[0], O_RDONLY | O_CLOEXEC);
	return reclaimable(mmap(NULL, PAGE, protection, flags, file, 0));
}

int *shared_file(void)
{
	return map(PROT_READ, MAP_SHARED);
}

/* For set_up(): the kernel or the file system lacks something. */
void *cannot(const char *why)
{
	lacks = why;
	return NULL;
}

/* Content of the file instead of OLD. */
void new_page(int *words)
{
	for (size_t i = 0; i < PAGE / sizeof(int); i++)
		words[i] = NEW;
}

int *aligned_page(void)
{
	static int words[2 * PAGE / sizeof(int)];
	int *aligned = (int *)(((uintptr_t)words + PAGE - 1) & -PAGE);

	new_page(aligned);
	return aligned;
}

void old_page(int *words)
{
	for (size_t i = 0; i < PAGE / sizeof(int); i++)
		words[i] = OLD;
}

void *anonymous_page(void)
{
	return reclaimable(mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

/* To an unmapped address: unmapping there flushes, too. */
void *away_from(void *at)
{
	return (char *)at + (1UL << 30);
}

int ended(pid_t child)
{
	int status;

	waitpid(child, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void end_sharer(void)
{
	if (sharer > 0) {
		kill(sharer, SIGKILL);
		waitpid(sharer, NULL, 0);
	}
	sharer = 0;
}
