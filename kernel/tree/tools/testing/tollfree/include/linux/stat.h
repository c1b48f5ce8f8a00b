/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_STAT_H
#define TOLLFREE_LINUX_STAT_H

#include <sys/stat.h>

#endif
