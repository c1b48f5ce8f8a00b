/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_ARRAY_SIZE_H
#define TOLLFREE_LINUX_ARRAY_SIZE_H

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif
