/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A block, a fork with a block, a vfork and an exec of itself with a block. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char *block(void)
{
	char *p = malloc(4 << 20);
	p[1 << 20] = 1;
	return p;
}

int main(int argc, char **argv)
{
	int status;

	if (argc > 1)
		return block()[1 << 20] == 1 ? 5 : 1;
	block();
	if (fork() == 0)
		_exit(block()[1 << 20] == 1 ? 3 : 1);
	wait(&status);
	printf("%d\n", WEXITSTATUS(status));
	if (vfork() == 0) {
		execl(argv[0], argv[0], "again", NULL);
		_exit(1);
	}
	wait(&status);
	printf("%d\n", WEXITSTATUS(status));
	return 0;
}
