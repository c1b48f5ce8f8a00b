/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_STRING_H
#define TOLLFREE_LINUX_STRING_H

#include <string.h>

#endif
