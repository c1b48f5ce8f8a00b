/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_COMPILER_H
#define TOLLFREE_LINUX_COMPILER_H

#include <linux/atomic.h>

#endif
