/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_SORT_H
#define TOLLFREE_LINUX_SORT_H

#include <stdlib.h>

/* No user needs another swap function. */
#define sort(base, number, size, compare, swap) qsort(base, number, size, compare)

#endif
