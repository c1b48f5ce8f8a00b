/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Closes all files, lowers its limits, changes its root if permitted, installs a filter that kills
 * on system calls that a plain allocating program does not make, and then allocates. Exit status 0
 * without output.
 */
#define _GNU_SOURCE
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(number) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int confine(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_mmap), ALLOW(SYS_munmap), ALLOW(SYS_mremap), ALLOW(SYS_brk),
		ALLOW(SYS_madvise), ALLOW(SYS_mprotect), ALLOW(SYS_getpid),
		ALLOW(SYS_clock_gettime), ALLOW(SYS_getrandom), ALLOW(SYS_exit_group), ALLOW(SYS_rt_sigreturn),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(void)
{
	struct rlimit none = { 0, 0 };
	char *p, *q;
	int fd;

	for (fd = 0; fd < 1024; fd++)
		close(fd);
	setrlimit(RLIMIT_NOFILE, &none);
	setrlimit(RLIMIT_FSIZE, &none);
	if (geteuid() == 0 && chroot("/proc"))
		return 2;
	if (confine())
		return 3;
	p = malloc(4 << 20);
	p[5] = 1;
	p = realloc(p, 40 << 20);
	q = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	q[5] = p[5];
	munmap(q, 8 << 20);
	free(p);
	return 0;
}
