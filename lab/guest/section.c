// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs a command as one section, and exits with its status.
 *
 *     section NAME COMMAND [ARGUMENT...]
 */
#include "section.h"

int main(int argc, char **argv)
{
	pid_t child;
	int status;

	if (argc < 3)
		usage("section NAME COMMAND [ARGUMENT...]");
	section_begin(argv[1]);
	child = new_child();
	if (child == 0) {
		execvp(argv[2], argv + 2);
		fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
		_exit(127);
	}
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			fail("wait");
	section_end();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
