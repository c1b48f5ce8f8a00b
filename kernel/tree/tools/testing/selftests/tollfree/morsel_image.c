// SPDX-License-Identifier: GPL-2.0-only
/* Writes ranges of persistent morsels, by the description of their format alone. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "morsel_image.h"

char *image;

static uint16_t check(uint64_t offset, uint64_t payload)
{
	uint64_t numbers[2] = { offset, payload };
	const unsigned char *bytes = (const unsigned char *)numbers;
	uint16_t sum = 0;

	for (int i = 0; i < 16; i++) {
		sum ^= bytes[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			sum = sum << 1 ^ (sum & 0x8000 ? 0x8bb7 : 0);
	}
	return sum;
}

static uint32_t crc32c(const char *bytes, size_t length)
{
	uint32_t sum = ~0U;

	for (size_t i = 0; i < length; i++) {
		sum ^= (unsigned char)bytes[i];
		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78 : 0);
	}
	return ~sum;
}

void image_word(uint64_t offset, uint64_t payload)
{
	uint64_t word = payload ? payload | (uint64_t)check(offset, payload) << 48 : 0;

	memcpy(image + offset, &word, sizeof(word));
}

void image_super(uint64_t page, uint32_t version, uint64_t pages, uint64_t features)
{
	char *at = image + page * 4096;
	uint32_t shift = 12, sum;

	memcpy(at, "MORSELFS", 8);
	memcpy(at + 8, &version, sizeof(version));
	memcpy(at + 12, &shift, sizeof(shift));
	memcpy(at + 24, &features, sizeof(features));
	memcpy(at + 32, "0123456789abcdef", 16);
	memcpy(at + 48, &pages, sizeof(pages));
	sum = crc32c(at, 252);
	memcpy(at + 252, &sum, sizeof(sum));
}

uint64_t image_inode(unsigned int number)
{
	return IMAGE_INODES * 4096 + number * 128;
}

uint64_t image_name(unsigned int slot)
{
	return IMAGE_NAMES * 4096 + slot * 512;
}

void image_add_inode(unsigned int number, uint64_t mode, uint64_t size, uint64_t root)
{
	image_word(image_inode(number) + INODE_MODE, mode);
	image_word(image_inode(number) + INODE_SIZE, size);
	image_word(image_inode(number) + INODE_ROOT, root);
}

void image_add_name(unsigned int slot, uint64_t inode, uint64_t parent, const char *text)
{
	uint64_t at = image_name(slot), length = strlen(text);

	memcpy(image + at + NAME_TEXT, text, length);
	image_word(at + NAME_LENGTH, length | (uint64_t)crc32c(text, length) << 8);
	image_word(at + NAME_PARENT, parent);
	image_word(at + NAME_INODE, inode);
}

void image_begin_xattrs(uint64_t page)
{
	char *at = image + page * 4096;
	uint16_t used = 16;

	memset(at, 0, 16);
	memcpy(at + 4, &used, sizeof(used));
	memcpy(at + 8, &page, sizeof(page));
}

void image_add_xattr(uint64_t page, const char *name, const char *value)
{
	char *at = image + page * 4096;
	uint16_t used, count, length = strlen(value);
	uint8_t lengths[2] = { strlen(name) };
	uint32_t sum;

	memcpy(&used, at + 4, sizeof(used));
	memcpy(&count, at + 6, sizeof(count));
	memcpy(at + used, lengths, 2);
	memcpy(at + used + 2, &length, sizeof(length));
	memcpy(at + used + 4, name, lengths[0]);
	memcpy(at + used + 4 + lengths[0], value, length);
	used += 4 + lengths[0] + length;
	count++;
	memcpy(at + 4, &used, sizeof(used));
	memcpy(at + 6, &count, sizeof(count));
	sum = crc32c(at + 4, used - 4);
	memcpy(at, &sum, sizeof(sum));
}

/* An empty range. */
void image_begin(void)
{
	if (!image)
		image = malloc(IMAGE_SIZE);
	if (!image)
		abort();
	memset(image, 0, IMAGE_SIZE);
	image_add_inode(1, 0040755, 0, 0);
	image_word(IMAGE_INODES_ROOT, IMAGE_ROOT(IMAGE_INODES, 0, 1, 0));
	image_word(IMAGE_NAMES_ROOT, IMAGE_ROOT(IMAGE_NAMES, 0, 1, 0));
	image_super(1, 1, IMAGE_PAGES, 0);
	image_super(0, 1, IMAGE_PAGES, 0);
}
