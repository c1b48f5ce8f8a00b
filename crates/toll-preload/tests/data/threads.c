/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Eight threads, created in order, that allocate in a different order: each one block of (its
 * number + 2) MiB. One ends with pthread_exit.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *work(void *argument)
{
	intptr_t number = (intptr_t)argument;
	char *block;

	usleep(rand() % 20000);
	block = malloc((size_t)(number + 2) << 20);
	memset(block, 1, 1000);
	if (number == 3)
		pthread_exit((void *)number);
	return (void *)number;
}

int main(void)
{
	pthread_t threads[8];
	void *result;
	intptr_t i, sum = 0;

	srand(getpid());
	for (i = 0; i < 8; i++)
		if (pthread_create(&threads[i], NULL, work, (void *)i))
			return 1;
	for (i = 0; i < 8; i++) {
		pthread_join(threads[i], &result);
		sum += (intptr_t)result;
	}
	printf("%ld\n", (long)sum);
	return 0;
}
