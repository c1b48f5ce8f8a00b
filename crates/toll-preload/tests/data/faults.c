/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Preloaded behind the library under test, which makes its system calls through syscall():
 * fails some of them, like a kernel without memory for page tables or mappings.
 *
 * FAIL_MREMAP=N	the Nth mremap fails with ENOMEM
 * FAIL_AGAIN=1		the next one of the same mapping fails too, if the Nth was to keep it
 * FAIL_DONTUNMAP=1	mremap does not support MREMAP_DONTUNMAP; such calls are not counted
 * FAIL_HUGETLB=1	a hugetlb mapping fails after the old mapping was removed
 * FAIL_FIXED=1		a later plain mapping at a fixed address fails too
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static long raw(long number, const long *a)
{
	register long r10 __asm__("r10") = a[3];
	register long r8 __asm__("r8") = a[4];
	register long r9 __asm__("r9") = a[5];
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static long number_of(const char *name)
{
	const char *value = getenv(name);

	return value ? atol(value) : 0;
}

static int remap_fails(const long *a)
{
	static int remaps, again;
	static long last;
	int keeps = a[3] & MREMAP_DONTUNMAP;

	if (keeps && number_of("FAIL_DONTUNMAP"))
		return 1;
	if (again && a[0] == last) {
		again = 0;
		return 1;
	}
	if (++remaps != number_of("FAIL_MREMAP"))
		return 0;
	again = keeps && number_of("FAIL_AGAIN");
	last = a[0];
	return 1;
}

static int fails(long number, const long *a)
{
	static int taken;

	if (number == SYS_mremap)
		return remap_fails(a);
	if (number != SYS_mmap || !(a[3] & MAP_FIXED))
		return 0;
	if ((a[3] & MAP_HUGETLB) && number_of("FAIL_HUGETLB")) {
		long range[6] = { a[0], a[1] };

		raw(SYS_munmap, range);
		taken = 1;
		return 1;
	}
	return taken && number_of("FAIL_FIXED");
}

long syscall(long number, ...)
{
	long a[6], result;
	va_list list;
	int i;

	va_start(list, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	result = fails(number, a) ? -ENOMEM : raw(number, a);
	if (result < 0 && result > -4096) {
		errno = (int)-result;
		return -1;
	}
	return result;
}
