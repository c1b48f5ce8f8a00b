/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_LIMITS_H
#define TOLLFREE_LINUX_LIMITS_H

#define U16_MAX UINT16_MAX
#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX

#endif
