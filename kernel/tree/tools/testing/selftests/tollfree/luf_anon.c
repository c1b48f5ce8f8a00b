// SPDX-License-Identifier: GPL-2.0-only
/* Tests of anonymous memory: it is clean and read-only after swap-in and fork. */
#define _GNU_SOURCE
#include <linux/userfaultfd.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "luf.h"

#ifndef UFFDIO_MOVE
/* Newer than the headers of many systems. */
struct uffdio_move {
	__u64 dst;
	__u64 src;
	__u64 len;
	__u64 mode;
	__s64 move;
};

#define UFFD_FEATURE_MOVE	0x10000
#define UFFDIO_MOVE		_IOWR(UFFDIO, 0x05, struct uffdio_move)
#endif

static bool is_swapped(const void *at)
{
	return !is_mapped(at);
}

static void swap_out(void *at)
{
	for (int i = 0; i < TRIES && !is_swapped(at); i++) {
		must(!madvise(at, PAGE, MADV_PAGEOUT), "MADV_PAGEOUT");
		if (is_swapped(at))
			break;
		/* The page may still be in a per-CPU batch of the LRU lists. */
		reclaim_all();
		wait_a_bit();
	}
	must(is_swapped(at), "the page was not swapped out");
}

static int *anonymous(void)
{
	int *at = anonymous_page();

	old_page(at);
	/* Swapped out and in: clean. */
	swap_out(at);
	get(*at);
	/* Shared: read-only. */
	sharer = fork();
	if (!sharer) {
		pause();
		_exit(0);
	}
	return at;
}

/* A write fault sets the entry. */
static void act_swap_in_to_store(int *at)
{
	end_sharer();
	new_page(at);
}

/* A read fault sets the entry, which is writable. */
static void act_swap_in_and_store(int *at)
{
	end_sharer();
	get(*at);
	new_page(at);
}

static void act_dontneed(int *at)
{
	must(!madvise(at, PAGE, MADV_DONTNEED), "MADV_DONTNEED");
}

static void act_free(int *at)
{
	must(!madvise(at, PAGE, MADV_FREE), "MADV_FREE");
}

/* After another swap-in it is read-only, because it is shared: unmap lazily again. */
static void act_pageout_and_store(int *at)
{
	get(*at);
	swap_out(at);
	end_sharer();
	new_page(at);
}

static bool userfaultfd_has(__u64 feature)
{
	__u64 features = 0;
	int fd = userfaultfd(&features);

	if (fd >= 0)
		close(fd);
	return features & feature;
}

static void watch(void *at, int mode)
{
	struct uffdio_register target = {
		.range = { .start = (uintptr_t)at, .len = PAGE },
		.mode = mode,
	};
	__u64 features;

	if (kept < 0)
		kept = userfaultfd(&features);
	must(kept >= 0 && !ioctl(kept, UFFDIO_REGISTER, &target), "userfaultfd");
}

static void write_protect(void *at, __u64 mode)
{
	struct uffdio_writeprotect protect = {
		.range = { .start = (uintptr_t)at, .len = PAGE },
		.mode = mode,
	};

	must(!ioctl(kept, UFFDIO_WRITEPROTECT, &protect), "UFFDIO_WRITEPROTECT");
}

static int *protectable(void)
{
	if (!userfaultfd_has(UFFD_FEATURE_PAGEFAULT_FLAG_WP))
		return cannot("a userfaultfd that protects nothing");
	return anonymous();
}

/* Only exclusive pages can be moved; they are read-only because they are protected. */
static int *movable(void)
{
	int *at;

	if (!userfaultfd_has(UFFD_FEATURE_PAGEFAULT_FLAG_WP) ||
	    !userfaultfd_has(UFFD_FEATURE_MOVE))
		return cannot("a userfaultfd that moves nothing");
	at = anonymous_page();
	old_page(at);
	swap_out(at);
	get(*at);
	watch(at, UFFDIO_REGISTER_MODE_WP);
	write_protect(at, UFFDIO_WRITEPROTECT_MODE_WP);
	return at;
}

static void act_copy(int *at)
{
	struct uffdio_copy copy = {
		.dst = (uintptr_t)at, .src = (uintptr_t)aligned_page(), .len = PAGE,
	};

	watch(at, UFFDIO_REGISTER_MODE_MISSING);
	act_dontneed(at);
	must(!ioctl(kept, UFFDIO_COPY, &copy), "UFFDIO_COPY");
}

static void act_watch_and_store(int *at)
{
	end_sharer();
	watch(at, UFFDIO_REGISTER_MODE_WP);
	write_protect(at, UFFDIO_WRITEPROTECT_MODE_WP);
	write_protect(at, 0);
	new_page(at);
}

static void act_move(int *at)
{
	int *there = anonymous_page();
	struct uffdio_move move = {
		.dst = (uintptr_t)there, .src = (uintptr_t)at, .len = PAGE,
	};

	/* Linux leaves the moved entry protected. */
	watch(there, UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP);
	must(!ioctl(kept, UFFDIO_MOVE, &move), "UFFDIO_MOVE");
	must(get(*there) == OLD, "what was moved is lost");
}

static void *twin;

/* KSM merges two pages with the same content. Return: the other one. */
void *merge(int *at)
{
	twin = anonymous_page();
	old_page(twin);
	must(!madvise(at, PAGE, MADV_MERGEABLE) && !madvise(twin, PAGE, MADV_MERGEABLE),
	     "MADV_MERGEABLE");
	must(write_text(KSM "run", "1"), KSM);
	for (int i = 0; i < 100 && number("/proc/self/ksm_merging_pages") < 2; i++)
		usleep(50000);
	must(number("/proc/self/ksm_merging_pages") == 2, "KSM merges nothing");
	must(write_text(KSM "run", "0"), KSM);
	return twin;
}

void end_twin(void)
{
	if (!twin)
		return;
	write_text(KSM "run", "2");
	write_text(KSM "run", "0");
	munmap(twin, PAGE);
	twin = NULL;
}

static int *mergeable(void)
{
	return access(KSM, F_OK) ? cannot("a kernel without CONFIG_KSM") : anonymous();
}

/* After swap-in it is read-only, because it is shared, and no flush precedes KSM. */
static void act_merge_and_store(int *at)
{
	get(*at);
	merge(at);
	end_sharer();
	new_page(at);
}

const struct litmus luf_anon_litmuses[] = {
	{ "swap in to store", anonymous, act_swap_in_to_store, NEW },
	{ "swap in to read, then store", anonymous, act_swap_in_and_store, NEW },
	{ "fork and store to swapped memory", anonymous, act_fork_and_store, NEW },
	{ "poke into swapped memory", anonymous, act_poke, NEW },
	{ "map anonymous memory over swapped memory", anonymous, act_map_fixed, 0 },
	{ "munmap swapped memory", anonymous, act_unmap, FAULTED },
	{ "mremap swapped memory away", anonymous, act_mremap_away, FAULTED },
	{ "mprotect of swapped memory", anonymous, act_protect, FAULTED },
	{ "MADV_DONTNEED of swapped memory", anonymous, act_dontneed, 0 },
	{ "MADV_FREE of swapped memory", anonymous, act_free, 0 },
	{ "MADV_PAGEOUT once more, then store", anonymous, act_pageout_and_store, NEW },
	{ "UFFDIO_COPY in place of a swapped page", protectable, act_copy, NEW },
	{ "UFFDIO_WRITEPROTECT of a swapped page", protectable, act_watch_and_store, NEW },
	{ "UFFDIO_MOVE of a swapped page", movable, act_move, 0 },
	{ "merge by KSM, then store", mergeable, act_merge_and_store, NEW },
	{}
};
