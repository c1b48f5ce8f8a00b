// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The first process of the lab's guests: runs the host's commands, returns their output, and powers off.
 *
 * /lab/commands holds one command a line: its name, then program and arguments, all separated by tabs. The host's
 * directory is mounted at /out. There, NAME.out and NAME.err get the output of the command, and NAME.status its end:
 * "exit N" or "signal N". The file "done" is written last; without it the guest did not complete.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define COMMANDS "/lab/commands"
#define OUT "/out"
#define ND "/sys/bus/nd"
#define MAX_WORDS 64
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *type, *source, *target, *options;
	int may_fail; /* a kernel may be without it */
} mounts[] = {
	{ "devtmpfs", "dev", "/dev", "", 0 },
	{ "proc", "proc", "/proc", "", 0 },
	{ "sysfs", "sys", "/sys", "", 0 },
	{ "tmpfs", "tmp", "/tmp", "", 0 },
	{ "9p", "out", OUT, "trans=virtio,version=9p2000.L,msize=131072", 0 },
	{ "debugfs", "debug", "/sys/kernel/debug", "", 1 },
	{ "tracefs", "trace", "/sys/kernel/tracing", "", 1 },
};

static _Noreturn void switch_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

static _Noreturn void fail(const char *what)
{
	printf("lab: %s: %s\n", what, strerror(errno));
	fflush(stdout);
	switch_off();
}

static void mount_all(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		mkdir(mounts[i].target, 0755);
		if (mount(mounts[i].source, mounts[i].target, mounts[i].type, 0, mounts[i].options) && !mounts[i].may_fail)
			fail(mounts[i].target);
	}
}

/* Whether /dev/pmem0 has page structures already: memory that keeps its content has a header that says so. */
static int has_pages(void)
{
	char device[512];
	ssize_t length = readlink("/sys/block/pmem0", device, sizeof(device) - 1);

	device[length < 0 ? 0 : length] = 0;
	return !!strstr(device, "/pfn");
}

/*
 * Binds persistent memory, where there is any, as /dev/pmem0 that can be mapped directly (fsdax): that needs a device
 * with page structures around the raw namespace, which a person would ask ndctl for.
 */
static void bind_pmem(void)
{
	static const struct {
		const char *path, *value;
	} writes[] = {
		{ ND "/drivers/nd_pmem/unbind", "namespace0.0" },
		{ ND "/devices/pfn0.0/namespace", "namespace0.0" },
		{ ND "/devices/pfn0.0/uuid", "5d1f2ab6-8d0e-4c39-9f0a-2f6d0c1b7e44" },
		{ ND "/devices/pfn0.0/mode", "ram" },
		{ ND "/drivers/nd_pmem/bind", "pfn0.0" },
	};

	if (access(ND "/devices/namespace0.0", F_OK) || has_pages())
		return;
	for (size_t i = 0; i < ARRAY_SIZE(writes); i++) {
		int fd = open(writes[i].path, O_WRONLY);

		if (fd < 0)
			fail(writes[i].path);
		/* It need not be bound before. */
		if (write(fd, writes[i].value, strlen(writes[i].value)) < 0 && i > 0)
			fail(writes[i].path);
		close(fd);
	}
}

/* Creates /out/NAME.SUFFIX. */
static int create(const char *name, const char *suffix)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), OUT "/%s%s", name, suffix);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		fail(path);
	return fd;
}

static void say(int fd, const char *text)
{
	size_t length = strlen(text);

	if (write(fd, text, length) != (ssize_t)length || close(fd))
		fail(OUT);
}

static _Noreturn void become(const char *name, char **words)
{
	int out = create(name, ".out"), err = create(name, ".err");

	if (dup2(out, 1) < 0 || dup2(err, 2) < 0)
		_exit(126);
	close(out);
	close(err);
	execv(words[0], words);
	fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
	_exit(127);
}

/* Waits for one child; others that it left behind are waited for as well. */
static int wait_for(pid_t child)
{
	int status;
	pid_t ended;

	do {
		ended = wait(&status);
		if (ended < 0 && errno != EINTR)
			fail("wait");
	} while (ended != child);
	return status;
}

static void run(const char *name, char **words)
{
	char text[32];
	int status;
	pid_t child;

	printf("lab: %s\n", name);
	fflush(stdout);
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0)
		become(name, words);
	status = wait_for(child);
	if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "signal %d\n", WTERMSIG(status));
	else
		snprintf(text, sizeof(text), "exit %d\n", WEXITSTATUS(status));
	say(create(name, ".status"), text);
}

/* Cuts a line at its tabs; the number of words, without the NULL at their end. */
static size_t cut(char *line, char **words)
{
	size_t n = 0;

	line[strcspn(line, "\n")] = '\0';
	for (char *word = strtok(line, "\t"); word; word = strtok(NULL, "\t")) {
		if (n == MAX_WORDS) {
			errno = E2BIG;
			fail(COMMANDS);
		}
		words[n++] = word;
	}
	words[n] = NULL;
	return n;
}

int main(void)
{
	char *words[MAX_WORDS + 1], *line = NULL;
	size_t size = 0;
	FILE *commands;

	mount_all();
	bind_pmem();
	commands = fopen(COMMANDS, "re");
	if (!commands)
		fail(COMMANDS);
	while (getline(&line, &size, commands) > 0)
		if (cut(line, words) >= 2)
			run(words[0], words + 1);
	say(create("done", ""), "done\n");
	switch_off();
}
