/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_SLAB_H
#define TOLLFREE_LINUX_SLAB_H

#include <stdbool.h>
#include <stdlib.h>

#define GFP_KERNEL	0
#define __GFP_NOWARN	0

/* Tests set how many allocations succeed from now on. */
static unsigned long allocations_left __attribute__((unused)) = -1UL;

static inline bool may_allocate(void)
{
	return allocations_left && allocations_left--;
}

#define kvmalloc_array(nr, size, flags)	(may_allocate() ? malloc((nr) * (size)) : NULL)
#define kvcalloc(nr, size, flags)	(may_allocate() ? calloc(nr, size) : NULL)
#define kvrealloc(old, size, flags)	(may_allocate() ? realloc(old, size) : NULL)
#define kvfree(old)			free(old)

#endif
