/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_CRC32_H
#define TOLLFREE_LINUX_CRC32_H

#include <linux/types.h>

static inline u32 __crc32c_le(u32 crc, const unsigned char *buffer, size_t length)
{
	while (length--) {
		crc ^= *buffer++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return crc;
}

#endif
