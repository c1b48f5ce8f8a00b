/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_BSEARCH_H
#define TOLLFREE_LINUX_BSEARCH_H

#include <stdlib.h>

/* That of Linux takes an empty array without an address. */
#define bsearch(key, base, number, size, compare) \
	((number) ? (bsearch)(key, base, number, size, compare) : NULL)

#endif
