/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Starts three threads, and forks from one of them; the child starts a thread that allocates a
 * block of 24 MiB. Exit status 0 without output.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void *allocate(void *unused)
{
	volatile char *block = malloc((size_t)24 << 20);

	(void)unused;
	block[0] = 1;
	return NULL;
}

static void run(void *(*routine)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, routine, NULL) || pthread_join(thread, NULL))
		_exit(1);
}

static void *nothing(void *unused)
{
	return unused;
}

static void *split(void *unused)
{
	int status = 1;

	if (fork() == 0) {
		run(allocate);
		_exit(0);
	}
	wait(&status);
	if (status)
		_exit(1);
	return unused;
}

int main(void)
{
	run(nothing);
	run(nothing);
	run(split);
	return 0;
}
