/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_MATH_H
#define TOLLFREE_LINUX_MATH_H

#define DIV_ROUND_UP(n, d) (((n) + (d) - 1) / (d))

#endif
