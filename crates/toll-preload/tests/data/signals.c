/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A timer's handler maps and unmaps large blocks while the program does the same. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <errno.h>

#define LENGTH (4 << 20)
static volatile sig_atomic_t calls, wrong;

static void *map(void)
{
	return mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void tick(int signal)
{
	int before = errno;
	char *p = map();

	(void)signal;
	p[5] = 5;
	munmap(p, LENGTH);
	wrong |= errno != before;
	calls++;
}

int main(void)
{
	struct itimerval every = { { 0, 200 }, { 0, 200 } };
	struct sigaction action;
	long i, sum = 0;

	memset(&action, 0, sizeof action);
	action.sa_handler = tick;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
	for (i = 0; i < 2000 || calls < 20; i++) {
		char *p;
		errno = 77;
		p = map();
		p[7] = 7;
		sum |= p[7];
		munmap(p, LENGTH);
		wrong |= errno != 77;
	}
	memset(&every, 0, sizeof every);
	setitimer(ITIMER_REAL, &every, NULL);
	printf("%ld %d\n", sum, (int)wrong);
	return 0;
}
