/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A hot and a cold block, and then an action that an observer has to survive.
 * faulty HOW [FILE] [ROUNDS] */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HOT = 32 << 20, COLD = 16 << 20 };

__attribute__((noinline)) static char *hot_block(void)
{
	return memset(malloc(HOT), 1, HOT);
}

/* The same, with huge pages that the program itself requests. */
static char *advised_block(void)
{
	char *block = malloc(HOT);
	size_t huge = 2 << 20, head = -(size_t)block % huge;

	madvise(block + head, (HOT - head) / huge * huge, MADV_HUGEPAGE);
	return memset(block, 1, HOT);
}

__attribute__((noinline)) static char *cold_block(void)
{
	return memset(malloc(COLD), 1, COLD);
}

/* Two arenas of a mapping: the program advises one huge and one small. The
 * memory of the first is freed and reused: it still has the hint. */
static char *reused_block(void)
{
	char *block = mmap(NULL, COLD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(block, COLD / 2, MADV_HUGEPAGE);
	madvise(block + COLD / 2, COLD / 2, MADV_NOHUGEPAGE);
	memset(block, 1, COLD / 2);
	madvise(block, COLD / 2, MADV_DONTNEED);
	return memset(block, 2, COLD / 4);
}

/* Loads from all over the block, each independent of the one before. */
static long gather(const volatile char *block, long rounds)
{
	unsigned state = 1;
	long sum = 0;

	while (rounds--) {
		state = state * 1664525u + 1013904223u;
		sum += block[(state >> 7) % HOT];
	}
	return sum;
}

/* Every byte value there is, on both streams. */
static void speak(void)
{
	unsigned char all[256];

	for (int i = 0; i < 256; i++)
		all[i] = i;
	for (int stream = 1; stream <= 2; stream++)
		if (write(stream, all, sizeof(all)) != sizeof(all))
			_exit(99);
}

/* Bytes of this process in huge pages. */
static long huge_kib(void)
{
	FILE *smaps = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	long kib = 0;

	while (smaps && fgets(line, sizeof(line), smaps))
		sscanf(line, "AnonHugePages: %ld kB", &kib);
	if (smaps)
		fclose(smaps);
	return kib;
}

/* A line with the kind of parent that started this run. */
static void log_run(const char *file)
{
	const char *who = getenv("TOLLFREE_SIM")      ? "simulated"
			  : getenv("TOLLFREE_EVENTS") ? "recorded"
						      : "plain";
	char line[64];
	int fd = open(file, O_WRONLY | O_CREAT | O_APPEND, 0666);
	int length = snprintf(line, sizeof(line), "%s %ld\n", who, (long)getpid());

	if (fd < 0 || write(fd, line, length) != length)
		_exit(98);
	close(fd);
}

/* A line with what PR_SET_THP_DISABLE is set to. */
static void log_switch(const char *file)
{
	FILE *log = fopen(file, "a");

	if (!log || fprintf(log, "%d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0)) < 0)
		_exit(98);
	fclose(log);
}

/* A child that works on its own block while the file "go" exists, and a parent that only
 * has memory. */
static void start_worker(char *hot)
{
	enum { OWN = 24 << 20 };
	char *own;

	if (fork())
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	free(hot);
	own = memset(malloc(OWN), 1, OWN);
	for (;;) {
		for (long i = 0; i < OWN && !access("go", F_OK); i += 4096)
			own[i]++;
		usleep(1000);
	}
}

/* A child that has all pages of its parent, and a line in the file "shared". */
static pid_t start_sharer(void)
{
	pid_t child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	log_run("shared");
	while (!access("go", F_OK))
		usleep(1000);
	_exit(0);
}

static void sleep_ms(long ms)
{
	usleep(ms * 1000);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	const char *file = argc > 2 ? argv[2] : "/dev/null";
	long rounds = argc > 3 ? atol(argv[3]) : 2000000;
	const char *hot, *cold;
	pid_t child;
	long sum;

	if (!strcmp(how, "slow-when-simulated") && getenv("TOLLFREE_SIM"))
		sleep(600);
	hot = strcmp(how, "advises") && strcmp(how, "huge") ? hot_block() : advised_block();
	cold = strcmp(how, "reuses") ? cold_block() : reused_block();
	if (!strcmp(how, "close"))
		for (int fd = 0; fd < 1024; fd++)
			close(fd);
	sum = gather(hot, rounds) + cold[7];
	if (strcmp(how, "close"))
		speak();
	if (!strcmp(how, "fork")) {
		child = fork();
		if (!child)
			_exit(gather(hot, rounds) > 0 ? 7 : 1);
		if (waitpid(child, &child, 0) < 0 || WEXITSTATUS(child) != 7)
			return 97;
	} else if (!strcmp(how, "exec")) {
		execl("/bin/sh", "sh", "-c", "exit 6", (char *)NULL);
	} else if (!strcmp(how, "abort")) {
		abort();
	} else if (!strcmp(how, "kill")) {
		kill(getpid(), SIGKILL);
	} else if (!strcmp(how, "term")) {
		kill(getpid(), SIGTERM);
	} else if (!strcmp(how, "sleep")) {
		log_run(file);
		sleep(600);
	} else if (!strcmp(how, "serve") || !strcmp(how, "huge")) {
		/* Prints its pid when the memory is touched. */
		log_run(file);
		for (;;)
			sum += gather(hot, 20000) + cold[sum % COLD];
	} else if (!strcmp(how, "counts")) {
		/* A line in the file "counts" for each piece of work. The file is there before the
		 * program says that it is ready. */
		log_run("counts");
		log_run(file);
		for (;;) {
			sum += gather(hot, 20000) + cold[sum % COLD];
			log_run("counts");
		}
	} else if (!strcmp(how, "shares")) {
		/* Shares its pages with a child while the file "go" exists. */
		log_run(file);
		for (child = -1;;) {
			sum += gather(hot, 20000) + cold[sum % COLD];
			if (child < 0 && !access("go", F_OK))
				child = start_sharer();
		}
	} else if (!strcmp(how, "replaces")) {
		/* Becomes another program when the file "go" exists. */
		log_run(file);
		while (access("go", F_OK))
			sum += gather(hot, 20000) + cold[sum % COLD];
		execl("/bin/sleep", "sleep", "600", (char *)NULL);
	} else if (!strcmp(how, "demand") || !strcmp(how, "reuses")) {
		/* Idle while the file "go" does not exist. */
		log_run(file);
		for (;;)
			if (!access("go", F_OK))
				sum += gather(hot, 200000);
			else
				sleep_ms(1);
	} else if (!strcmp(how, "employs")) {
		start_worker((char *)hot);
		log_run(file);
		for (;;)
			sleep_ms(100);
	} else if (!strcmp(how, "switch")) {
		log_switch(file);
	} else if (!strcmp(how, "advises")) {
		/* Huge by its own madvise, and slower without. It has all of its memory for long
		 * enough to be looked at: an observer looks less and less often. */
		sleep_ms(huge_kib() < HOT / 2048 ? 1300 : 1000);
	} else if (!strcmp(how, "gains") || !strcmp(how, "slow-when-simulated")) {
		/* Sleeps less if it is huge: a gain far above the noise. */
		log_run(file);
		sleep_ms(strcmp(how, "gains") ? 420 : 60);
		sleep_ms(huge_kib() < HOT / 2048 ? 100 : 0);
	}
	return sum > 0 ? 5 : 96;
}
