// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The system calls of mmfuzz. Each takes its parameters from the generator of its operation and from nothing else, so
 * that an operation is the same whatever was done before. All pages have only bytes 0 and RETURN: any of them can be executed.
 */
#ifndef MMFUZZ_CALLS_H
#define MMFUZZ_CALLS_H

#include "settings.h"
#include "uffd.h"

#include <setjmp.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* SLOTS ranges of addresses; most are small, so that all together are 55 MiB. */
enum { SLOTS = 64, SMALL_SLOTS = 52, SMALL_PAGES = 32, LARGE_PAGES = 1024, FILES = 4 };
enum { RETURN = 0xc3, WORD = 64, MOST_TOUCHED = 16, MOST_COPIED = 16, MOST_RECLAIMED = 32 };

#define ARENA ((char *)0x100000000000)
#define SLOT_STRIDE (LARGE_PAGES * PAGE)
#define DISK_FILE "/mnt/file"

struct range {
	char *start;
	size_t length;
};

/* A thread of mmfuzz. */
struct worker {
	size_t number;
	uint64_t state;     /* of the generator of its operation */
	int pipes[2][2];
	unsigned long *done, *failed;
	volatile bool is_touching;
	sigjmp_buf back;
};

static __thread struct worker *me;

static int files[FILES], disk_file = -1, uffd = -1, scan_fd = -1;

static size_t below(size_t limit)
{
	return next_random(&me->state) % limit;
}

static size_t pages_of(size_t slot)
{
	return slot < SMALL_SLOTS ? SMALL_PAGES : LARGE_PAGES;
}

static struct range part_of(size_t slot, size_t most)
{
	size_t pages = pages_of(slot), first = 0;

	if (below(4)) {
		first = below(pages);
		pages = 1 + below(pages - first < SMALL_PAGES ? pages - first : SMALL_PAGES);
	}
	if (pages > most)
		pages = most;
	return (struct range){ ARENA + slot * SLOT_STRIDE + first * PAGE, pages * PAGE };
}

/* A slot or a short part of it, of `most` pages at most. */
static struct range pick_upto(size_t most)
{
	return part_of(below(SLOTS), most);
}

static struct range pick(void)
{
	return pick_upto(LARGE_PAGES);
}

/* An aligned range of 2 or 4 MiB. */
static struct range pick_block(void)
{
	char *slot = ARENA + (SMALL_SLOTS + below(SLOTS - SMALL_SLOTS)) * SLOT_STRIDE;
	size_t blocks = 1 + below(2);

	return (struct range){ slot + (blocks == 1 ? below(2) : 0) * REGION, blocks * REGION };
}

static int pick_file(void)
{
	size_t file = below(FILES + 1);

	return file < FILES ? files[file] : disk_file;
}

static off_t pick_offset(void)
{
	return (off_t)(below(LARGE_PAGES) * PAGE);
}

/* Zeroes, if another thread has put them there, are additions of 0 to the page itself. */
static inline void call_page(char *page)
{
	asm volatile("call *%0" : : "a"(page) : "memory", "cc");
}

/* Reads, writes or calls a page; what happens to it meanwhile may be a fault. */
static __attribute__((noinline)) void touch_page(char *page, size_t how)
{
	volatile unsigned char *byte = (volatile unsigned char *)page;

	if (sigsetjmp(me->back, 0)) {
		me->is_touching = false;
		return;
	}
	me->is_touching = true;
	if (how == 0)
		byte[0] = RETURN;
	else if (how == 1)
		byte[WORD] = RETURN;
	else if (byte[0] == RETURN && how == 2)
		call_page(page);
	me->is_touching = false;
}

static void touch(struct range range, size_t how)
{
	size_t pages = range.length / PAGE, step = 1 + pages / MOST_TOUCHED;

	for (size_t page = 0; page < pages; page += step)
		touch_page(range.start + page * PAGE, how);
}

static long map(struct range range, int flags, int fd, off_t offset)
{
	int protection = below(4) ? PROT_READ | PROT_WRITE | (below(2) ? PROT_EXEC : 0) : PROT_READ;

	return mmap(range.start, range.length, protection, flags | MAP_FIXED, fd, offset) == MAP_FAILED ? -1 : 0;
}

static long do_mmap(void)
{
	struct range range = pick();

	return map(range, MAP_ANONYMOUS | (below(4) ? MAP_PRIVATE : MAP_SHARED), -1, 0);
}

static long do_mmap_file(void)
{
	int flags = below(2) ? MAP_SHARED : MAP_PRIVATE, fd = pick_file();

	return map(pick(), flags | (below(4) ? 0 : MAP_POPULATE), fd, pick_offset());
}

/* Aligned, so that a huge page of the file can be mapped. */
static long do_mmap_file_block(void)
{
	return map(pick_block(), below(2) ? MAP_SHARED : MAP_PRIVATE, files[below(FILES)], 0);
}

static long do_mmap_huge(void)
{
	struct range range = pick_block();

	if (map(range, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
		return -1;
	return madvise(range.start, range.length, MADV_HUGEPAGE);
}

static long do_mmap_hugetlb(void)
{
	return map(pick_block(), MAP_ANONYMOUS | MAP_HUGETLB | (below(2) ? MAP_PRIVATE : MAP_SHARED), -1, 0);
}

static long do_munmap(void)
{
	struct range range = pick();

	return munmap(range.start, range.length);
}

static long do_mremap_move(void)
{
	struct range from = below(2) ? pick() : pick_block(), to = below(2) ? pick() : pick_block();
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;

	if (to.length < from.length)
		from.length = to.length;
	if (!below(4))
		flags |= MREMAP_DONTUNMAP;
	return mremap(from.start, from.length, from.length, flags, to.start) == MAP_FAILED ? -1 : 0;
}

/* Without a move; a range does not grow out of its slot. */
static long do_mremap_resize(void)
{
	size_t slot = below(SLOTS);
	struct range range = part_of(slot, LARGE_PAGES);
	size_t to = PAGE * (1 + below(pages_of(slot)));
	char *end = ARENA + slot * SLOT_STRIDE + pages_of(slot) * PAGE;

	if (range.start + to > end)
		to = (size_t)(end - range.start);
	return mremap(range.start, range.length, to, 0) == MAP_FAILED ? -1 : 0;
}

static long do_mprotect(void)
{
	struct range range = pick();

	return mprotect(range.start, range.length, below(2) ? PROT_READ | PROT_WRITE : (int)below(8));
}

static long do_madvise(void)
{
	static const int advices[] = {
		MADV_DONTNEED, MADV_DONTNEED, MADV_FREE, MADV_PAGEOUT, MADV_PAGEOUT, MADV_COLD, MADV_WILLNEED,
		MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_MERGEABLE, MADV_UNMERGEABLE,
		MADV_WIPEONFORK, MADV_KEEPONFORK, MADV_DONTFORK, MADV_DOFORK, MADV_REMOVE,
	};
	struct range range = pick();

	return madvise(range.start, range.length, advices[below(sizeof(advices) / sizeof(*advices))]);
}

static long do_collapse(void)
{
	struct range range = pick_block();

	return madvise(range.start, range.length, MADV_COLLAPSE);
}

/* A child uses a part of the arena, in competition with its parent. */
static long do_fork(void)
{
	struct range range = pick(), other = pick();
	size_t how = below(3);
	pid_t child = fork();

	if (child == 0) {
		touch(range, how);
		_exit(0);
	}
	touch(other, 0);
	return child < 0 ? -1 : waitpid(child, NULL, 0) - child;
}

static long do_exec(void)
{
	char *const words[] = { (char *)"mmfuzz", (char *)"child", NULL };
	struct range range = pick();
	pid_t child = fork();

	if (child == 0) {
		touch(range, 0);
		execv("/proc/self/exe", words);
		_exit(127);
	}
	return child < 0 ? -1 : waitpid(child, NULL, 0) - child;
}

static long do_uffd_register(void)
{
	struct range range = pick();
	struct uffdio_range request = { (uintptr_t)range.start, range.length };

	if (below(4))
		return uffd_register(uffd, range.start, range.length, UFFDIO_REGISTER_MODE_WP);
	return ioctl(uffd, UFFDIO_UNREGISTER, &request);
}

static long do_uffd_protect(void)
{
	struct range range = pick();

	if (below(2))
		uffd_register(uffd, range.start, range.length, UFFDIO_REGISTER_MODE_WP);
	return uffd_protect(uffd, range.start, range.length, below(4));
}

static long do_pagemap_scan(void)
{
	struct range range = pick();

	return pagemap_protect(scan_fd, range.start, range.length) < 0 ? -1 : 0;
}

/*
 * Into a new mapping. A fault in it waits as long as it is registered; so if another thread has put a mapping there
 * that cannot be unregistered, all of it is unmapped, and a thread that still waits is woken.
 */
static long do_uffd_move(void)
{
	struct range to = pick_upto(MOST_COPIED), from = { pick().start, to.length };
	struct uffdio_range target = { (uintptr_t)to.start, to.length };
	long result;

	if (mmap(to.start, to.length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ||
	    uffd_register(uffd, to.start, to.length, UFFDIO_REGISTER_MODE_MISSING))
		return -1;
	result = uffd_move(uffd, to.start, from.start, to.length);
	if (ioctl(uffd, UFFDIO_UNREGISTER, &target))
		munmap(to.start, to.length);
	ioctl(uffd, UFFDIO_WAKE, &target);
	return result;
}

static long do_process_vm(void)
{
	struct range a = pick_upto(MOST_COPIED), b = pick_upto(MOST_COPIED);
	struct iovec local = { a.start, a.length }, remote = { b.start, b.length };

	if (below(2))
		return process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	return process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
}

static long do_truncate(void)
{
	return ftruncate(files[below(FILES)], below(4) ? (off_t)SLOT_STRIDE : pick_offset());
}

static long do_punch(void)
{
	off_t offset = pick_offset();

	return fallocate(pick_file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, (off_t)(PAGE * (1 + below(64))));
}

static long do_read(void)
{
	struct range range = pick_upto(MOST_COPIED);

	return pread(pick_file(), range.start, range.length, pick_offset());
}

static long do_write(void)
{
	struct range range = pick_upto(MOST_COPIED);
	off_t offset = pick_offset() % (off_t)(SLOT_STRIDE - MOST_COPIED * PAGE);

	return pwrite(pick_file(), range.start, range.length, offset);
}

static void drain(int fd)
{
	char data[PAGE];

	while (read(fd, data, sizeof(data)) > 0)
		;
}

/* Pages of the arena stay in the pipe until this thread fills it again. */
static long do_vmsplice(void)
{
	struct range range = pick_upto(MOST_COPIED);
	struct iovec vector = { range.start, range.length };
	unsigned int flags = SPLICE_F_NONBLOCK | (below(2) ? SPLICE_F_GIFT : 0);

	drain(me->pipes[0][0]);
	return vmsplice(me->pipes[0][1], &vector, 1, flags);
}

static long do_tee(void)
{
	do_vmsplice();
	drain(me->pipes[1][0]);
	return tee(me->pipes[0][0], me->pipes[1][1], SLOT_STRIDE, SPLICE_F_NONBLOCK);
}

/* Whole pages only: else the bytes of a page would shift. */
static long do_splice(void)
{
	off_t offset = pick_offset();

	do_vmsplice();
	return splice(me->pipes[0][0], NULL, files[below(FILES)], &offset, MOST_COPIED * PAGE, SPLICE_F_NONBLOCK);
}

static long do_read_pipe(void)
{
	struct range range = pick_upto(MOST_COPIED);

	do_vmsplice();
	return read(me->pipes[0][0], range.start, range.length);
}

static long do_msync(void)
{
	static const int flags[] = { MS_ASYNC, MS_SYNC, MS_SYNC | MS_INVALIDATE };
	struct range range = pick();

	return msync(range.start, range.length, flags[below(3)]);
}

static long do_mlock(void)
{
	struct range range = pick();

	return below(3) ? munlock(range.start, range.length) : mlock2(range.start, range.length, (unsigned int)below(2));
}

static long do_mincore(void)
{
	struct range range = pick();
	unsigned char resident[LARGE_PAGES];

	return mincore(range.start, range.length, resident);
}

static long do_swap(void)
{
	long result = swapoff(ZRAM_DEVICE);

	return swapon(ZRAM_DEVICE, 0) ? -1 : result;
}

static long do_compact(void)
{
	return set("/proc/sys/vm/compact_memory", "1") ? 0 : -1;
}

/* Few pages: reclaim sleeps long if it does not find what is requested. */
static long do_reclaim(void)
{
	return set_number(GROUP_RECLAIM, PAGE * (1 + below(MOST_RECLAIMED))) ? 0 : -1;
}

static long do_soft_dirty(void)
{
	return set("/proc/self/clear_refs", below(2) ? "4" : "1") ? 0 : -1;
}

#endif
