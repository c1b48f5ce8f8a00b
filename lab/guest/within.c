// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs a command for a limited time and kills all processes that it leaves behind.
 *
 * The exit status is that of the command; TIME_OVER if it had to be killed, STUCK if a process could not be killed.
 * It kills every process of the guest except the first one and itself.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TIME_OVER = 124, STUCK = 125 };

/* Seconds to wait for killed processes. */
#define DEATH 20

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "within: %s: %s\n", what, strerror(errno));
	exit(STUCK);
}

/* Keeps the OOM killer away from this process. Without the privilege nothing changes. */
static void set_oom_score(const char *score)
{
	FILE *file = fopen("/proc/self/oom_score_adj", "we");

	if (file) {
		fputs(score, file);
		fclose(file);
	}
}

static _Noreturn void become(char **words, const sigset_t *mask)
{
	set_oom_score("0");
	setsid();
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(words[0], words);
	fprintf(stderr, "within: %s: %s\n", words[0], strerror(errno));
	_exit(127);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

/*
 * Reaps children until `child` has ended, or, if it is 0, until none is left. Returns 0 if the time is over before that.
 */
static int reap(pid_t child, int *status, double end)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	for (;;) {
		int how;
		pid_t ended = waitpid(-1, &how, WNOHANG);
		struct timespec left = { 0 };
		double seconds = end - now();

		if (ended > 0 && ended == child) {
			*status = how;
			return 1;
		}
		if (ended < 0 && errno == ECHILD)
			return 1;
		if (ended > 0)
			continue;
		if (seconds <= 0)
			return 0;
		left.tv_sec = (time_t)seconds;
		left.tv_nsec = (long)((seconds - (double)left.tv_sec) * 1e9);
		sigtimedwait(&signals, NULL, &left);
	}
}

int main(int argc, char **argv)
{
	sigset_t signals, before;
	int status = 0, in_time;
	double seconds;
	pid_t child;

	if (argc < 3 || (seconds = atof(argv[1])) <= 0) {
		fprintf(stderr, "usage: within SECONDS COMMAND [ARGUMENT...]\n");
		return 2;
	}
	/* Orphans of the command become children of this process. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	set_oom_score("-1000");
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &before);
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0)
		become(argv + 2, &before);
	in_time = reap(child, &status, now() + seconds);
	/* Kills all but the first process and this one. Repeated, because they may fork meanwhile. */
	for (int i = 0; i < DEATH; i++) {
		kill(-1, SIGKILL);
		if (reap(0, &status, now() + 1))
			break;
		if (i == DEATH - 1) {
			fprintf(stderr, "within: a process cannot be killed\n");
			return STUCK;
		}
	}
	if (!in_time)
		return TIME_OVER;
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
	}
	return WEXITSTATUS(status);
}
