/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_MMZONE_H
#define TOLLFREE_LINUX_MMZONE_H

#define PAGE_ALLOC_COSTLY_ORDER 3

#endif
