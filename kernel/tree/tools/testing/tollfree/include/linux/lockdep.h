/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_LOCKDEP_H
#define TOLLFREE_LINUX_LOCKDEP_H

#include <assert.h>

#define lockdep_assert_held(lock) assert((lock)->is_held)

#endif
