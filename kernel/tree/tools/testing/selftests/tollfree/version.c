// SPDX-License-Identifier: GPL-2.0-only
/* /sys/kernel/mm/tollfree/version: there, MAJOR.MINOR, and read-only. */

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../kselftest.h"

#define VERSION_FILE "/sys/kernel/mm/tollfree/version"

/* Skips digits; false if there is none. */
static bool skip_number(const char **text)
{
	const char *start = *text;

	while (isdigit((unsigned char)**text))
		(*text)++;
	return *text != start;
}

static bool is_version(const char *text)
{
	return skip_number(&text) && *text++ == '.' && skip_number(&text) &&
	       strcmp(text, "\n") == 0;
}

static void test_content(void)
{
	char text[64];
	ssize_t length;
	int fd;

	fd = open(VERSION_FILE, O_RDONLY);
	if (fd < 0)
		ksft_exit_fail_msg("%s: %s\n", VERSION_FILE, strerror(errno));
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[length > 0 ? length : 0] = '\0';
	ksft_test_result(is_version(text), "content is MAJOR.MINOR\n");
}

static void test_read_only(void)
{
	int fd = open(VERSION_FILE, O_WRONLY);
	bool refused;

	/* root may open read-only files for writing */
	refused = fd < 0 || write(fd, "9.9\n", 4) < 0;
	if (fd >= 0)
		close(fd);
	ksft_test_result(refused, "cannot be written\n");
}

int main(void)
{
	ksft_print_header();
	if (access("/sys/kernel/mm", F_OK))
		ksft_exit_skip("no /sys/kernel/mm: sysfs is not mounted\n");
	ksft_set_plan(2);

	test_content();
	test_read_only();

	ksft_finished();
}
