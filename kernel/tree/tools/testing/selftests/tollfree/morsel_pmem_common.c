// SPDX-License-Identifier: GPL-2.0-only
/* The image of the tests of persistent morsels, on /dev/pmem0, and its mount. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "morsel_pmem.h"

/* What the page @page of the range has, in each word. */
uint64_t content_of(uint64_t page)
{
	return page * 0x9e3779b97f4a7c15UL | 1;
}

void fill_page(uint64_t page)
{
	for (size_t at = 0; at < PAGE; at += 8) {
		uint64_t word = content_of(page);

		memcpy(image + page * PAGE + at, &word, sizeof(word));
	}
}

/* The page of the range that the morsel has at an index; 0 for a hole. */
static uint64_t page_of(size_t index)
{
	if (index == 1)
		return FIRST;
	if (index >= 512 && index < 1024)
		return IMAGE_BLOCK + index - 512;
	return index == 1024 ? LAST : 0;
}

uint64_t expected(size_t at)
{
	uint64_t page = page_of(at / PAGE);

	return page ? content_of(page) : 0;
}

/* Everything that the format has. */
void make_image(void)
{
	image_begin();
	image_add_inode(2, 0100640, SIZE, IMAGE_ROOT(TABLE, 2, 0, 15));
	image_word(image_inode(2) + INODE_UID, 1000);
	image_word(image_inode(2) + INODE_GID, 1001);
	/* 2001-09-09 01:46:40.5, in steps of 100 us since 1901. */
	image_word(image_inode(2) + INODE_MTIME, (1000000000UL + (1UL << 31)) << 14 | 5000);
	image_word(TABLE * PAGE, LOWER);
	image_word(TABLE * PAGE + 8, IMAGE_BLOCK | IMAGE_LEAF);
	image_word(LOWER * PAGE + 8, FIRST | IMAGE_LEAF);
	image_word(TABLE * PAGE + 16, LAST + 100);
	image_word((LAST + 100) * PAGE, LAST | IMAGE_LEAF);
	fill_page(FIRST);
	fill_page(LAST);
	for (uint64_t page = IMAGE_BLOCK; page < IMAGE_BLOCK + 512; page++)
		fill_page(page);
	image_add_inode(3, 0040700, 0, 0);
	image_add_inode(4, 0100600, 9, IMAGE_ROOT(SMALL, 0, 1, 0));
	memcpy(image + SMALL * PAGE, "some text", 9);
	image_add_inode(5, 0120777, 8, IMAGE_ROOT(TARGET, 0, 1, 0));
	memcpy(image + TARGET * PAGE, "d/morsel", 8);
	image_add_inode(6, 0020000, 0, 0);
	/* The deepest first. */
	image_add_name(0, 2, 3, "morsel");
	image_add_name(1, 3, 1, "d");
	image_add_name(2, 4, 1, "text");
	image_add_name(3, 4, 3, "link");
	image_add_name(4, 5, 1, "symlink");
	image_add_name(5, 6, 1, "whiteout");
}

void write_device(const void *bytes, size_t length, off_t at)
{
	int fd = open(DEVICE, O_WRONLY);

	must(fd >= 0 && pwrite(fd, bytes, length, at) == (ssize_t)length && !fsync(fd), DEVICE);
	close(fd);
}

void write_image(void)
{
	write_device(image, IMAGE_SIZE, 0);
}

/* Write a word to the device, beside the image in memory. */
void write_word(uint64_t offset, uint64_t payload)
{
	image_word(offset, payload);
	write_device(image + offset, 8, offset);
}

/* End the program if the device or the kernel's support is missing. */
void need_device(void)
{
	if (access(DEVICE, W_OK))
		ksft_exit_skip("no %s\n", DEVICE);
	mkdir("/tmp", 01777);
	mkdir(MOUNT, 0700);
	if (mount("none", MOUNT, "morselfs", MS_RDONLY, "pmem=/dev/nothing") && errno != ENOENT)
		ksft_exit_skip("no persistent morsels: %s\n", strerror(errno));
}

int mount_device(void)
{
	return mount("none", MOUNT, "morselfs", MS_RDONLY, "pmem=" DEVICE);
}

void mount_image(void)
{
	make_image();
	write_image();
	must(!mount_device(), "mount");
}

void unmount(void)
{
	while (!umount2(MOUNT, MNT_DETACH))
		;
}

/* Errno of a mount of the image as it is, 0 if it can be mounted. */
int mount_error(void)
{
	int err;

	write_image();
	err = mount_device() ? errno : 0;
	unmount();
	return err;
}

/* Each word of the image, by its place. */
const uint64_t words[] = {
	IMAGE_INODES_ROOT, IMAGE_NAMES_ROOT,
	IMAGE_INODES * PAGE + 128 + INODE_MODE, IMAGE_INODES * PAGE + 2 * 128 + INODE_SIZE,
	IMAGE_INODES * PAGE + 2 * 128 + INODE_ROOT, IMAGE_INODES * PAGE + 2 * 128 + INODE_MTIME,
	IMAGE_INODES * PAGE + 5 * 128 + INODE_ROOT, IMAGE_NAMES * PAGE + NAME_INODE,
	IMAGE_NAMES * PAGE + NAME_PARENT, IMAGE_NAMES * PAGE + NAME_LENGTH,
	IMAGE_NAMES * PAGE + 512 + NAME_INODE, IMAGE_NAMES * PAGE + NAME_TEXT,
	TABLE * PAGE, TABLE * PAGE + 8, LOWER * PAGE + 8, (LAST + 100) * PAGE,
};

const size_t nr_words = ARRAY_SIZE(words);
