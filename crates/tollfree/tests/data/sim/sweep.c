// SPDX-License-Identifier: MIT OR Apache-2.0
/* Touches each page of a mapping once a round: sweep MIB ROUNDS ADVICE THREADS HOW
 * ADVICE: as for madvise (0: none). HOW: plain, twice (map, use, unmap, map again),
 * close (close stdout and stderr first), kill (SIGKILL after it), fork (a child does
 * the same), exec (become /bin/true after it), fixed (map at 1 TiB). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static size_t bytes;
static int rounds, advice;
/* Where to map; NULL: anywhere. */
static char *place;

/* One load a page, nothing else in memory but the stack. */
static void touch(volatile char *at, size_t length)
{
	for (int round = 0; round < rounds; round++)
		for (size_t i = 0; i < length; i += 4096)
			(void)at[i];
}

/* A mapping at a region's border. */
static char *map(void)
{
	int fixed = place ? MAP_FIXED : 0;
	char *at = mmap(place, bytes + (2 << 20), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);

	if (at == MAP_FAILED)
		exit(1);
	at = (char *)(((uintptr_t)at + (2 << 20) - 1) & -(2l << 20));
	if (advice && madvise(at, bytes, advice))
		exit(1);
	return at;
}

static void *thread(void *data)
{
	(void)data;
	touch(map(), bytes);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 5 ? argv[5] : "plain";
	int threads = atoi(argv[4]);
	pthread_t id[64];
	char *at;

	bytes = (size_t)atoi(argv[1]) << 20;
	rounds = atoi(argv[2]);
	advice = atoi(argv[3]);
	if (!strcmp(how, "close")) {
		close(1);
		close(2);
	}
	if (!strcmp(how, "fixed"))
		place = (char *)(1l << 40);
	for (int i = 1; i < threads; i++)
		pthread_create(&id[i], NULL, thread, NULL);
	at = map();
	touch(at, bytes);
	for (int i = 1; i < threads; i++)
		pthread_join(id[i], NULL);
	if (!strcmp(how, "twice")) {
		char *again;

		munmap((void *)at, bytes);
		again = mmap(at, bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		touch(again, bytes);
	}
	if (!strcmp(how, "fork")) {
		pid_t child = fork();

		if (!child) {
			touch(at, bytes);
			_exit(7);
		}
		int status;
		waitpid(child, &status, 0);
		return WEXITSTATUS(status) == 7 ? 3 : 1;
	}
	if (!strcmp(how, "exec"))
		execl("/bin/true", "true", (char *)NULL);
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (strcmp(how, "close"))
		printf("swept\n");
	return 0;
}
