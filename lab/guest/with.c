// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs a command under its profile, if the policy has profiles and the kernel accepts them.
 *
 *     with PROFILE COMMAND [ARGUMENT...]
 *
 * Profiles are in /lab/profiles. A policy without profiles lacks that directory, and a kernel without econ lacks
 * /proc/self/mm_profile: then the command runs without a profile.
 */
#include "util.h"

#include <fcntl.h>

#define PROFILES "/lab/profiles"
#define GIVEN_TO "/proc/self/mm_profile"

static char profile[1 << 20];

static size_t read_profile(const char *name)
{
	char path[256];
	size_t length;
	FILE *file;

	snprintf(path, sizeof(path), PROFILES "/%s", name);
	file = fopen(path, "re");
	if (!file)
		fail(path);
	length = fread(profile, 1, sizeof(profile), file);
	if (ferror(file) || !length)
		fail(path);
	fclose(file);
	return length;
}

/* What is refused is refused with a reason, which is read from the same descriptor. */
static void give(const char *name)
{
	size_t length = read_profile(name);
	int fd = open(GIVEN_TO, O_RDWR | O_CLOEXEC);
	ssize_t got;

	if (fd < 0)
		fail(GIVEN_TO);
	if (write(fd, profile, length) == (ssize_t)length) {
		close(fd);
		return;
	}
	got = pread(fd, profile, sizeof(profile) - 1, 0);
	profile[got > 0 ? got : 0] = '\0';
	fprintf(stderr, "with: %s: %s\n", name, profile);
	exit(1);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		usage("with PROFILE COMMAND [ARGUMENT...]");
	if (!access(PROFILES, F_OK) && !access(GIVEN_TO, F_OK))
		give(argv[1]);
	execvp(argv[2], argv + 2);
	fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
	return 127;
}
