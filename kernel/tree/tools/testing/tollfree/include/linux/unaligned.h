/* SPDX-License-Identifier: GPL-2.0-only */
/* For little-endian machines. */
#ifndef TOLLFREE_LINUX_UNALIGNED_H
#define TOLLFREE_LINUX_UNALIGNED_H

#include <linux/types.h>
#include <string.h>

static inline u16 get_unaligned_le16(const void *at)
{
	u16 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline u32 get_unaligned_le32(const void *at)
{
	u32 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline u64 get_unaligned_le64(const void *at)
{
	u64 value;

	memcpy(&value, at, sizeof(value));
	return value;
}

static inline void put_unaligned_le32(u32 value, void *at)
{
	memcpy(at, &value, sizeof(value));
}

static inline void put_unaligned_le64(u64 value, void *at)
{
	memcpy(at, &value, sizeof(value));
}

#endif
