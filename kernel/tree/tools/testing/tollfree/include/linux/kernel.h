/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_KERNEL_H
#define TOLLFREE_LINUX_KERNEL_H

#include <linux/array_size.h>
#include <linux/minmax.h>

#endif
