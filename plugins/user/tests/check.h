/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the unit tests. */
#ifndef TOLL_CHECK_H
#define TOLL_CHECK_H

#include <stdio.h>

static int failures;

#define EXPECT(what, value, expected)                                          \
	do {                                                                   \
		unsigned long long v = (value), e = (expected);                \
		if (v != e) {                                                  \
			printf("%s:%d: %s is %llu, not %llu\n", __FILE__,      \
			       __LINE__, what, v, e);                          \
			failures++;                                            \
		}                                                              \
	} while (0)

static inline int finish(const char *name)
{
	printf("%s %s\n", failures ? "not ok" : "ok", name);
	return failures != 0;
}

#endif
