/* SPDX-License-Identifier: GPL-2.0-only */
/* The recording in its shared file: see recording.h. */
#define _GNU_SOURCE
#include "recording.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Room for 512 Ki blocks and for 1 TiB of mapped memory, counted at each map. */
#define BLOCKS_MAX (1ull << 19)
#define PAGES_MAX (1ull << 28)
/* Above this many records, repeated events at the same address share theirs. */
#define PAGES_SOFT (1ull << 24)
#define BLOCKS_SOFT (1ull << 17)
/* Longest block for which pages are looked up in the page map. */
#define SCAN_MAX (64ull << 30)
/* Last block of an address and size: slots of the table, a power of two. */
#define RECENT 65536

_Static_assert(sizeof(struct header) <= RECORDING_HEADER, "header fits");

struct header *recording;
struct block *recording_blocks;
struct page *recording_pages;

static uint32_t recent[RECENT];
static int pagemap = -1;

bool recording_open(const char *path)
{
	uint64_t blocks = BLOCKS_MAX * sizeof(struct block);
	uint64_t bytes = RECORDING_HEADER + blocks + PAGES_MAX * sizeof(struct page);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char *base;

	if (fd < 0)
		return false;
	if (ftruncate(fd, bytes)) {
		close(fd);
		return false;
	}
	base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	close(fd);
	if (base == MAP_FAILED)
		return false;
	recording = (struct header *)base;
	recording_blocks = (struct block *)(base + RECORDING_HEADER);
	recording_pages = (struct page *)(base + RECORDING_HEADER + blocks);
	memset(recent, 0xff, sizeof(recent));
	memcpy(recording->magic, RECORDING_MAGIC, 8);
	recording->header_size = RECORDING_HEADER;
	recording->block_size = sizeof(struct block);
	recording->page_size = sizeof(struct page);
	recording->blocks_max = BLOCKS_MAX;
	recording->pages_max = PAGES_MAX;
	recording->process = getpid();
	return true;
}

static uint32_t *recent_slot(const struct block_key *key)
{
	uint64_t hash = key->address ^ key->length << 7 ^ key->offset ^ (uint64_t)key->kind << 60;

	return &recent[(hash * 0x9e3779b97f4a7c15ull) >> 48];
}

/* Returns the end of a path that fits. */
static void copy_path(char *to, const char *path)
{
	size_t length = strlen(path);

	if (length >= RECORDING_PATH)
		path += length - (RECORDING_PATH - 1);
	strcpy(to, path);
}

/* Returns an ended block that may represent this one too. */
static bool may_reuse(const struct block *block, const struct block_key *key)
{
	bool crowded = recording->pages > PAGES_SOFT || recording->blocks > BLOCKS_SOFT;

	return block->kind == key->kind && block->address == key->address &&
	       block->length == key->length && block->offset == key->offset &&
	       (block->flags & BLOCK_FREED) &&
	       (key->kind != BLOCK_EVENT || crowded) &&
	       !strcmp(block->path, key->path ? key->path : "");
}

uint32_t recording_block(const struct block_key *key)
{
	uint64_t pages = (key->length + PAGE_BYTES - 1) / PAGE_BYTES;
	uint32_t *last = recent_slot(key);
	struct block *block;

	if (*last != NO_BLOCK && may_reuse(&recording_blocks[*last], key)) {
		recording_blocks[*last].flags &= ~BLOCK_FREED;
		recording_blocks[*last].flags |= BLOCK_REUSED;
		return *last;
	}
	if (recording->blocks == BLOCKS_MAX || recording->pages + pages > PAGES_MAX) {
		recording->flags |= RECORDING_FULL;
		return NO_BLOCK;
	}
	*last = recording->blocks;
	block = &recording_blocks[*last];
	block->event = key->event;
	block->address = key->address;
	block->length = pages * PAGE_BYTES;
	block->first = recording->pages;
	block->offset = key->offset;
	block->mapping = key->mapping;
	block->mapping_at = key->mapping_at;
	copy_path(block->path, key->path ? key->path : "");
	recording->pages += pages;
	/*
	 * A reader of a killed program's recording must not see a partially written
	 * block.
	 */
	__atomic_store_n(&block->kind, key->kind, __ATOMIC_RELEASE);
	__atomic_store_n(&recording->blocks, *last + 1, __ATOMIC_RELEASE);
	return *last;
}

struct page *recording_page(uint32_t block, uint64_t base, uint64_t address)
{
	uint64_t page = (address - base) / PAGE_BYTES;

	if (block == NO_BLOCK || page >= recording_blocks[block].length / PAGE_BYTES)
		return NULL;
	return &recording_pages[recording_blocks[block].first + page];
}

/* Flags the pages that the page map reports as in memory or in swap. */
static bool scan_some(uint32_t block, uint64_t base, uint64_t start, uint64_t count,
		      uint32_t flags)
{
	uint64_t entries[512];
	uint64_t host = start + recording->guest_base;
	ssize_t got = pread(pagemap, entries, count * sizeof(entries[0]),
			    host / PAGE_BYTES * sizeof(entries[0]));

	if (got < (ssize_t)(count * sizeof(entries[0])))
		return false;
	for (uint64_t i = 0; i < count; i++) {
		struct page *page;

		if (!(entries[i] >> 62))
			continue;
		page = recording_page(block, base, start + i * PAGE_BYTES);
		if (page)
			__atomic_or_fetch(&page->flags, flags, __ATOMIC_RELAXED);
	}
	return true;
}

void recording_scan(uint32_t block, uint64_t base, uint64_t start, uint64_t end,
		    uint32_t (*region_flags)(uint64_t address))
{
	if (block == NO_BLOCK || end - start > SCAN_MAX)
		return;
	if (pagemap < 0)
		pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	if (pagemap < 0)
		return;
	for (uint64_t at = start, stop; at < end; at = stop) {
		uint32_t flags = PAGE_TOUCHED | region_flags(at);

		stop = at / REGION_BYTES * REGION_BYTES + REGION_BYTES;
		if (stop > end)
			stop = end;
		if (!scan_some(block, base, at, (stop - at + PAGE_BYTES - 1) / PAGE_BYTES,
			       flags))
			return;
	}
	__atomic_or_fetch(&recording_blocks[block].flags, BLOCK_SCANNED, __ATOMIC_RELAXED);
}
