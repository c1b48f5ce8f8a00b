/* SPDX-License-Identifier: GPL-2.0-only */
/* User-space tests report in the format of kselftest programs. */
#ifndef TOLLFREE_TAP_H
#define TOLLFREE_TAP_H

#include <stdbool.h>
#include <stdio.h>

static int tap_number, tap_failures;
static bool tap_ok = true;

#define EXPECT_EQ(got, expected)						\
	do {									\
		unsigned long long g = (got), e = (expected);			\
										\
		if (g != e) {							\
			printf("# %s:%d: %s is %llu, not %llu\n", __FILE__,	\
			       __LINE__, #got, g, e);				\
			tap_ok = false;						\
		}								\
	} while (0)

static inline void tap_run(const char *name, void (*test)(void))
{
	tap_ok = true;
	test();
	printf("%sok %d %s\n", tap_ok ? "" : "not ", ++tap_number, name);
	tap_failures += !tap_ok;
}

#define RUN(test) tap_run(#test, test)

static inline int tap_end(void)
{
	printf("1..%d\n", tap_number);
	return tap_failures ? 1 : 0;
}

#endif
