/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_MUTEX_H
#define TOLLFREE_LINUX_MUTEX_H

#include <assert.h>
#include <stdbool.h>

/* Of programs with one thread: a second lock would wait for ever. */
struct mutex {
	bool is_held;
};

static inline void mutex_lock(struct mutex *lock)
{
	assert(!lock->is_held);
	lock->is_held = true;
}

static inline void mutex_unlock(struct mutex *lock)
{
	assert(lock->is_held);
	lock->is_held = false;
}

#endif
