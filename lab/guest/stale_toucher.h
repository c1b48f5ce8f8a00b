// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The toucher: a thread on CPU 1 that uses a region and makes no system call. The main thread, on CPU 0, gives it
 * orders through a shared page, and waits until an order is obeyed. The kernel does not copy that page at fork: the
 * toucher has the faults of its region only.
 */
#ifndef STALE_TOUCHER_H
#define STALE_TOUCHER_H

#include "util.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

/* What the toucher does with each page, and whether it repeats that until the next order. */
enum { READ = 1, WRITE = 2, CALL = 4, ON = 8 };

/* A fault puts the toucher into the kernel; after that number it waits in user mode for the next order. */
enum { MOST_FAULTS = 4 };
enum { PAUSES = 50 };
enum { NOT_POSSIBLE = 4 };

/* Where a page has what: an instruction, and the word that is written. */
enum { RETURN = 0xc3, WORD = 64 };

static struct board {
	atomic_uint order, obeyed, how, sweeps;
	char *_Atomic start;
	atomic_size_t length, stride;
	atomic_ulong touches, faults;
	sigjmp_buf back;
} *board;

static __thread bool is_toucher;
static bool has_toucher;

/* Ends the program: this machine or kernel lacks what the case needs. */
__attribute__((format(printf, 1, 2))) static _Noreturn void not_possible(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(NOT_POSSIBLE);
}

static void on_fault(int number)
{
	if (is_toucher)
		siglongjmp(board->back, 1);
	signal(number, SIG_DFL);
}

static void board_new(void)
{
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };

	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (board == MAP_FAILED)
		fail("mmap");
	if (sigaction(SIGSEGV, &action, NULL) || sigaction(SIGBUS, &action, NULL))
		fail("sigaction");
}

/* False if the page could not be used. */
static __attribute__((noinline)) bool use(char *page, unsigned int how)
{
	if (sigsetjmp(board->back, 0))
		return false;
	if (how & READ)
		(void)*(volatile char *)page;
	if (how & WRITE)
		*(volatile unsigned int *)(page + WORD) = how;
	if (how & CALL)
		((void (*)(void))(uintptr_t)page)();
	return true;
}

/* Uses each page of the region once; the number of faults that are left. */
static int sweep(int left)
{
	char *start = atomic_load(&board->start);
	size_t length = atomic_load(&board->length), stride = atomic_load(&board->stride);

	for (size_t at = 0; at < length && left; at += stride) {
		if (use(start + at, atomic_load(&board->how))) {
			atomic_fetch_add(&board->touches, 1);
			continue;
		}
		atomic_fetch_add(&board->faults, 1);
		left--;
	}
	return left;
}

static void pause_a_little(int times)
{
	while (times--)
		__builtin_ia32_pause();
}

static _Noreturn void *toucher(void *unused)
{
	unsigned int obeyed = 0;
	int left = 0;

	(void)unused;
	is_toucher = true;
	pin(1);
	for (;;) {
		unsigned int order = atomic_load(&board->order);

		if (order != obeyed || (atomic_load(&board->how) & ON))
			left = sweep(order != obeyed ? MOST_FAULTS : left);
		obeyed = order;
		atomic_store(&board->obeyed, order);
		atomic_fetch_add(&board->sweeps, 1);
		pause_a_little(PAUSES);
	}
}

static void toucher_start(void)
{
	pthread_t id;

	atomic_store(&board->order, 0);
	atomic_store(&board->obeyed, 0);
	if ((errno = pthread_create(&id, NULL, toucher, NULL)))
		fail("pthread_create");
	has_toucher = true;
}

/* Other threads of this CPU may have work that the main thread waits for. */
static void wait_a_little(void)
{
	pause_a_little(PAUSES);
	sched_yield();
}

/* Lets the toucher use one page of each `stride` bytes of the region, and waits until it has used all once. */
static void touch_each(char *start, size_t length, size_t stride, unsigned int how)
{
	unsigned int order;

	if (!has_toucher)
		toucher_start();
	atomic_store(&board->length, 0);
	atomic_store(&board->start, start);
	atomic_store(&board->stride, stride);
	atomic_store(&board->how, how);
	atomic_store(&board->length, length);
	order = atomic_fetch_add(&board->order, 1) + 1;
	while (atomic_load(&board->obeyed) != order)
		wait_a_little();
}

static void touch(char *start, size_t length, unsigned int how)
{
	touch_each(start, length, PAGE, how);
}

/* Lets the toucher use nothing. */
static void rest(void)
{
	touch(NULL, 0, 0);
}

/* If the toucher repeats, waits until it has used each page once more, or had its faults. */
static void settle(void)
{
	unsigned int before = atomic_load(&board->sweeps);

	while ((atomic_load(&board->how) & ON) && atomic_load(&board->sweeps) - before < 2)
		wait_a_little();
}

#endif
