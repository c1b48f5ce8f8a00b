/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_SPINLOCK_H
#define TOLLFREE_LINUX_SPINLOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Number of locks taken, for single-threaded tests. */
static unsigned long locks_taken __attribute__((unused));

typedef struct {
	pthread_mutex_t mutex;
	bool is_held;
} spinlock_t;

#define __SPIN_LOCK_UNLOCKED(name)	{ .mutex = PTHREAD_MUTEX_INITIALIZER }

static inline void spin_lock_init(spinlock_t *lock)
{
	pthread_mutex_init(&lock->mutex, NULL);
	lock->is_held = false;
}

static inline void spin_lock(spinlock_t *lock)
{
	pthread_mutex_lock(&lock->mutex);
	lock->is_held = true;
	__atomic_add_fetch(&locks_taken, 1, __ATOMIC_RELAXED);
}

static inline void spin_unlock(spinlock_t *lock)
{
	lock->is_held = false;
	pthread_mutex_unlock(&lock->mutex);
}

static inline spinlock_t *guard_begin(spinlock_t *lock)
{
	spin_lock(lock);
	return lock;
}

static inline void guard_end(spinlock_t **lock)
{
	if (*lock)
		spin_unlock(*lock);
}

/* Until the end of the block. */
#define guard(kind) spinlock_t *held __attribute__((cleanup(guard_end))) = guard_begin

#endif
