/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of morsels share. */
#ifndef TOLLFREE_MORSEL_TEST_H
#define TOLLFREE_MORSEL_TEST_H

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../kselftest.h"

#define PAGE	4096UL
#define MIB	0x100000UL
#define SYSFS	"/sys/kernel/mm/morsel/"
#define ALL	(F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static inline bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return done;
}

static inline long count(const char *name)
{
	char path[128], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), SYSFS "%s", name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		ksft_exit_fail_msg("%s: %s\n", path, strerror(errno));
	close(fd);
	return atol(text);
}

/* Others change what is read, and read what is written. */
static inline uint64_t load(const void *at)
{
	return __atomic_load_n((const uint64_t *)at, __ATOMIC_SEQ_CST);
}

static inline void store(void *at, uint64_t word)
{
	__atomic_store_n((uint64_t *)at, word, __ATOMIC_SEQ_CST);
}

static __thread sigjmp_buf behind;

static inline void jump(int signal)
{
	(void)signal;
	siglongjmp(behind, 1);
}

/*
 * Whether there is anything: not behind the end, nor in a full mount. SIGBUS has
 * to call jump().
 */
static inline bool try_to_load(const void *at, uint64_t *word)
{
	if (sigsetjmp(behind, 1))
		return false;
	*word = load(at);
	return true;
}

static inline bool try_to_store(void *at, uint64_t word)
{
	if (sigsetjmp(behind, 1))
		return false;
	store(at, word);
	return true;
}

#endif
