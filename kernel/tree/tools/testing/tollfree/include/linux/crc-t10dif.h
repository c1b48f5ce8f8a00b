/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_CRC_T10DIF_H
#define TOLLFREE_LINUX_CRC_T10DIF_H

#include <linux/types.h>

static inline u16 crc_t10dif_generic(u16 crc, const unsigned char *buffer, size_t length)
{
	while (length--) {
		crc ^= *buffer++ << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = crc << 1 ^ (crc & 0x8000 ? 0x8bb7 : 0);
	}
	return crc;
}

#endif
