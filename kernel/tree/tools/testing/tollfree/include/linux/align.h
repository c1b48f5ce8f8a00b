/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_ALIGN_H
#define TOLLFREE_LINUX_ALIGN_H

#define ALIGN(x, to) (((x) + (to) - 1) / (to) * (to))

#endif
