// SPDX-License-Identifier: MIT OR Apache-2.0
/* How a program in a guest talks to the virtual PMU (toll_lab_magic.h). Without one it does nothing. */
#ifndef TOLL_H
#define TOLL_H

#include <string.h>

enum { TOLL_BEGIN = 1, TOLL_END = 2, TOLL_WATCH = 3, TOLL_STEP = 4 };

static inline void toll_say(unsigned long operation, const void *first, unsigned long second)
{
	/* nopl 0x6c6c6f74(%rax) */
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80, 0x74, 0x6f, 0x6c, 0x6c"
			 :
			 : "D"(operation), "S"(first), "d"(second)
			 : "memory");
}

/* Counts from here to toll_end() are of the section of this name: lower case, digits, dashes; 63 at most. */
static inline void toll_begin(const char *name)
{
	/* The plugin reads the name where it is: it must be mapped by then. */
	volatile char mapped = *name;

	(void)mapped;
	toll_say(TOLL_BEGIN, name, strlen(name));
}

static inline void toll_end(void)
{
	toll_say(TOLL_END, 0, 0);
}

/* Misses in this range are also counted apart, from the next section on. */
static inline void toll_watch(const void *start, unsigned long length)
{
	toll_say(TOLL_WATCH, start, length);
}

/* A step for a recording of stores to persistent memory: two numbers. */
static inline void toll_step(unsigned long first, unsigned long second)
{
	toll_say(TOLL_STEP, (const void *)first, second);
}

#endif
