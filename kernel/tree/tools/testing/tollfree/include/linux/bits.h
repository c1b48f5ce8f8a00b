/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_BITS_H
#define TOLLFREE_LINUX_BITS_H

#define BIT(n) (1UL << (n))
#define BIT_ULL(n) (1ULL << (n))

#endif
