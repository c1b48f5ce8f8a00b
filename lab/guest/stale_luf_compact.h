// SPDX-License-Identifier: MIT OR Apache-2.0
/* Cases of lazy unmap flush: compaction drains the pool, and unmaps by itself. */
#ifndef STALE_LUF_COMPACT_H
#define STALE_LUF_COMPACT_H

#include "stale_luf_pool.h"

#include <sys/sysinfo.h>

/* Takes a part of the free memory, most of the node's, while `meanwhile` runs. */
static void luf_with_most_memory(size_t sixteenths, void (*meanwhile)(void))
{
	struct sysinfo info;
	size_t length;
	char *other;

	if (sysinfo(&info))
		fail("sysinfo");
	length = info.freeram * info.mem_unit / 16 * sixteenths;
	other = anonymous(length);
	madvise(other, length, MADV_HUGEPAGE);
	advise(other, length, MADV_POPULATE_WRITE);
	meanwhile();
	unmap(other, length);
}

static void luf_read_file(void)
{
	unmap(luf_map(AREA + GIB, COMPACT_PAGES * PAGE), COMPACT_PAGES * PAGE);
}

/*
 * Compaction moves pages to higher addresses: the file gets low ones while other memory has most of the node. In each
 * round anew, since there is nothing to move after the first one.
 */
static void luf_read_to_low_frames(void)
{
	luf_drop_cache();
	luf_with_most_memory(6, luf_read_file);
}

/* Compaction finds nothing but the region. */
static void luf_compact_only_region(void)
{
	compact_prepare();
	luf_file_pages_prepare(COMPACT_PAGES);
	luf_set("/proc/sys/vm/compact_unevictable_allowed", 0);
	if (mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT))
		fail("mlockall");
}

static void luf_compact_prepare(void)
{
	luf_compact_only_region();
	luf_expect(LUF "stats/deferred_compaction");
}

static void luf_compact_pool_prepare(void)
{
	luf_compact_only_region();
	luf_expect(LUF_DEFERRED);
}

/* The frames that it leaves are anywhere, so nearly all of the node gets a new owner. */
static void luf_compact(void)
{
	if (!set("/proc/sys/vm/compact_memory", "1"))
		fail("/proc/sys/vm/compact_memory");
	luf_with_most_memory(7, settle);
}

static char *luf_map_movable(size_t length)
{
	char *region;

	luf_read_to_low_frames();
	region = luf_map(AREA + GIB, length);
	if (munlock(region, length))
		fail("munlock");
	touch(region, length, READ);
	return region;
}

/* Compaction drains the pool first. There is nothing to move, because that would flush too. */
static void luf_compact_pool_round(void)
{
	char *region = luf_map_movable(REGION);

	advise(region, REGION, MADV_PAGEOUT);
	luf_compact();
	finish(region, REGION);
}

static void luf_compact_round(void)
{
	char *region = luf_map_movable(COMPACT_PAGES * PAGE);

	luf_compact();
	finish(region, COMPACT_PAGES * PAGE);
}

#endif
