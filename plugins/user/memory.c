/* SPDX-License-Identifier: GPL-2.0-only */
/* State of the guest's memory: see memory.h. */
#define _GNU_SOURCE
#include "memory.h"

#include "spans.h"
#include "wire.h"

#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define ADDRESSES (1ull << 47)
#define HEAP_CHUNK (1ull << 30)
#define HEAP_REGIONS 65536
#define LOG 4096

#define ADVISE_COLLAPSE 25
#define THP_DISABLE 41
#define THP_EXCEPT_ADVISED 2
#define REMAP_DONTUNMAP 4

/* Bits of span.flags. Adjacent spans with equal flags are one mapping. */
enum {
	AREA_PRIVATE = 1,
	AREA_ADVISED = 2,
	AREA_FORBIDDEN = 4,
	AREA_2M = 8,
	AREA_1G = 16,
	AREA_HEAP = 32,
	AREA_PROTECTION = 64, /* and the next two bits */
	/* Shared memory, which huge pages can hold; and whether they were requested. */
	AREA_SHARED = 512,
	AREA_COLLAPSED = 1024,
};

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
/* The kernel's mappings, overlaid by the allocation events. */
static struct spans areas, events;
/*
 * Ranges covered by an event since the memory was mapped: their pages belong to the
 * event, not to the area.
 */
static struct spans named;

/* Private anonymous mappings, numbered as in the kernel's profiles. */
static struct spans mappings;
static uint32_t ordinals[64][8];

static enum thp_mode mode;
static bool thp_disabled;

static uint64_t heap_start, heap_end;
/* Bytes of heap that were mapped because brk had reached its end. */
static uint64_t heap_mapped;
/* Heap regions that grew in more than one step. */
static uint64_t heap_small[HEAP_REGIONS / 64];

uint64_t memory_changes;
static struct change log_ring[LOG];

void memory_init(enum thp_mode thp)
{
	mode = thp;
}

static uint64_t down(uint64_t value, uint64_t unit)
{
	return value / unit * unit;
}

static uint64_t up(uint64_t value, uint64_t unit)
{
	return down(value + unit - 1, unit);
}

static uint32_t protection(uint64_t bits)
{
	return (bits & 7) * AREA_PROTECTION;
}

/* Notifies the threads. Call with the lock held, after the change. */
static void changed(uint64_t start, uint64_t end, bool invalidates)
{
	log_ring[memory_changes % LOG] = (struct change){ start, end, invalidates };
	__atomic_store_n(&memory_changes, memory_changes + 1, __ATOMIC_RELEASE);
}

bool memory_change(uint64_t number, struct change *change)
{
	bool there;

	pthread_rwlock_rdlock(&lock);
	there = number + LOG > memory_changes;
	if (there)
		*change = log_ring[number % LOG];
	pthread_rwlock_unlock(&lock);
	return there;
}

/* --- page sizes --- */

static bool heap_grew_in_steps(uint64_t region)
{
	uint64_t index = (region - down(heap_start, REGION_BYTES)) / REGION_BYTES;

	return index >= HEAP_REGIONS || (heap_small[index / 64] >> index % 64 & 1);
}

static void set_heap_small(uint64_t region, bool small)
{
	uint64_t index = (region - down(heap_start, REGION_BYTES)) / REGION_BYTES;

	if (index >= HEAP_REGIONS)
		return;
	if (small)
		heap_small[index / 64] |= 1ull << index % 64;
	else
		heap_small[index / 64] &= ~(1ull << index % 64);
}

/*
 * Whether the region lies in one mapping that huge pages can hold: private anonymous or
 * shared memory; `flags` are its flags.
 */
static bool one_mapping(uint64_t region, uint32_t *flags)
{
	uint64_t at = region;

	while (at < region + REGION_BYTES) {
		const struct span *span = spans_at(&areas, at);

		if (!span || !(span->flags & (AREA_PRIVATE | AREA_SHARED)))
			return false;
		if (at == region)
			*flags = span->flags;
		else if (span->flags != *flags)
			return false;
		at = span->end;
	}
	return true;
}

static bool huge_natively(uint64_t region, uint32_t flags)
{
	/* The settings of shared memory are others: assumed to be never, the default. */
	if (flags & AREA_SHARED)
		return flags & AREA_COLLAPSED;
	if (mode == THP_NEVER || thp_disabled || (flags & AREA_FORBIDDEN))
		return false;
	if ((flags & AREA_HEAP) && heap_grew_in_steps(region))
		return false;
	return mode == THP_ALWAYS || (flags & AREA_ADVISED);
}

static void find_sizes(uint64_t address, const struct span *area, struct lookup *found)
{
	uint64_t region = down(address, REGION_BYTES);
	uint32_t flags = 0;

	if (area->flags & (AREA_2M | AREA_1G)) {
		found->native = area->flags & AREA_1G ? TLB_1G : TLB_2M;
		found->eligible = found->native;
	} else if ((area->flags & (AREA_PRIVATE | AREA_SHARED)) &&
		   one_mapping(region, &flags)) {
		found->eligible = TLB_2M;
		if (huge_natively(region, flags))
			found->native = TLB_2M;
	}
}

/* Returns the flags for the current and the possible size of a page. */
static uint32_t size_flags(const struct lookup *found)
{
	return (found->native == TLB_4K ? 0 : PAGE_HUGE) |
	       (found->eligible == TLB_4K ? 0 : PAGE_ELIGIBLE);
}

static void mark(struct page *page, uint32_t flags)
{
	if (page && (page->flags & flags) != flags)
		__atomic_or_fetch(&page->flags, flags, __ATOMIC_RELAXED);
}

static bool find(uint64_t address, struct lookup *found)
{
	const struct span *area = spans_at(&areas, address);
	const struct span *event = spans_at(&events, address);

	*found = (struct lookup){ .native = TLB_4K, .eligible = TLB_4K };
	if (!area)
		return false;
	find_sizes(address, area, found);
	if (event)
		found->page = recording_page(event->block, event->base, address);
	if (!found->page)
		found->page = recording_page(area->block, area->base, address);
	mark(found->page, PAGE_TOUCHED | size_flags(found));
	return true;
}

static void discover(uint64_t address);

struct lookup memory_lookup(uint64_t address)
{
	struct lookup found;
	bool known;

	pthread_rwlock_rdlock(&lock);
	known = find(address, &found);
	pthread_rwlock_unlock(&lock);
	if (known)
		return found;
	pthread_rwlock_wrlock(&lock);
	discover(address);
	if (!find(address, &found))
		__atomic_add_fetch(&recording->lost, 1, __ATOMIC_RELAXED);
	pthread_rwlock_unlock(&lock);
	return found;
}

/* --- map and unmap --- */

/* Returns the page size of a region, as flags. */
static uint32_t region_flags(uint64_t address)
{
	struct lookup found = { .native = TLB_4K, .eligible = TLB_4K };
	const struct span *area = spans_at(&areas, address);

	if (area)
		find_sizes(address, area, &found);
	return size_flags(&found);
}

/* Records the touched pages of start..end in a span of an area, outside events. */
static void scan_area(const struct span *span, uint64_t start, uint64_t end)
{
	while (start < end) {
		const struct span *event = spans_from(&named, start);
		uint64_t stop = event && event->start < end ? event->start : end;

		if (stop > start)
			recording_scan(span->block, span->base, start, stop,
				       region_flags);
		start = event && event->start < end ? event->end : end;
	}
}

/* Records the touched pages in start..end, and the end of the blocks there. */
static void retire(struct spans *spans, uint64_t start, uint64_t end, bool ended)
{
	for (struct span *span = spans_from(spans, start); span && span->start < end;
	     span = spans_from(spans, span->end)) {
		uint64_t from = span->start > start ? span->start : start;
		uint64_t to = span->end < end ? span->end : end;
		const struct span *area = spans_at(&areas, from);

		if (area && (area->flags & AREA_PRIVATE)) {
			if (spans == &areas)
				scan_area(span, from, to);
			else
				recording_scan(span->block, span->base, from, to,
					       region_flags);
		}
		if (ended && span->block != NO_BLOCK)
			recording_blocks[span->block].flags |= BLOCK_FREED;
	}
}

static void retire_all(uint64_t start, uint64_t end, bool ended)
{
	retire(&events, start, end, ended);
	retire(&areas, start, end, ended);
}

static void remove_range(uint64_t start, uint64_t end)
{
	spans_remove(&events, start, end);
	spans_remove(&areas, start, end);
	spans_remove(&named, start, end);
	spans_remove(&mappings, start, end);
	changed(start, end, true);
}

/* --- names of mappings in other runs --- */

static void count_mapping(uint64_t start, uint64_t end, uint64_t bits)
{
	unsigned int class = 63 - __builtin_clzll(end - start);
	struct span span = {
		.start = start,
		.end = end,
		.flags = class << 3 | (bits & 7),
		.block = ordinals[class][bits & 7]++,
		.base = start,
	};

	spans_put(&mappings, &span);
}

static void name_mapping(struct block_key *key)
{
	const struct span *span = spans_at(&mappings, key->address);

	if (!span)
		return;
	key->mapping = MAPPING(span->flags >> 3, span->flags & 7, span->block);
	key->mapping_at = key->address - span->base;
}

/* Adds a mapping, with a block of its own. */
static void add_area(uint64_t start, uint64_t end, uint32_t flags, enum block_kind kind,
		     uint64_t offset, const char *path)
{
	struct block_key key = {
		.kind = kind,
		.event = UINT32_MAX,
		.address = start,
		.length = end - start,
		.offset = offset,
		.path = path,
	};
	struct span span = { .start = start, .end = end, .flags = flags, .base = start };

	if (kind == BLOCK_ANONYMOUS)
		name_mapping(&key);
	span.block = recording_block(&key);
	if (kind == BLOCK_FILE && (flags & AREA_SHARED) && span.block != NO_BLOCK)
		recording_blocks[span.block].flags |= BLOCK_SHARED;
	spans_put(&areas, &span);
}

/*
 * Returns the file with data that ends where this memory starts: the memory is the
 * program's zeroed data.
 */
static const struct span *data_before(uint64_t start)
{
	const struct span *before = spans_at(&areas, start - 1);

	if (!before || before->block == NO_BLOCK ||
	    recording_blocks[before->block].kind != BLOCK_FILE)
		return NULL;
	return before;
}

static void add_zeroed_data(const struct span *before, uint64_t start, uint64_t end,
			    uint32_t flags)
{
	const struct block *block = &recording_blocks[before->block];
	char path[RECORDING_PATH];

	strcpy(path, block->path);
	add_area(start, end, flags, BLOCK_FILE, block->offset + (start - before->base), path);
}

static uint32_t anonymous_flags(uint64_t flags)
{
	unsigned int shift = flags >> 26 & 63;

	if (flags & MAP_HUGETLB)
		return shift == 30 ? AREA_1G : AREA_2M;
	if (flags & (MAP_STACK | MAP_GROWSDOWN))
		return 0;
	return flags & MAP_PRIVATE ? AREA_PRIVATE : AREA_SHARED;
}

/* A writable shared mapping of a file in memory. */
static uint32_t file_flags(const struct memory_call *call)
{
	bool shared = !(call->a[3] & MAP_PRIVATE) && (call->a[2] & PROT_WRITE);

	return shared && call->in_memory ? AREA_SHARED : 0;
}

/*
 * Memory that would be heap in a native run: it continues at the current end of the heap.
 */
static bool continues_heap(const struct memory_call *call)
{
	return call->short_of_heap && !call->a[0] &&
	       (call->a[3] & (MAP_PRIVATE | MAP_FIXED)) == MAP_PRIVATE;
}

static void after_mmap(const struct memory_call *call, uint64_t start)
{
	uint64_t flags = call->a[3], end = start + up(call->a[1], PAGE_BYTES);
	const struct span *before = NULL;

	spans_remove(&events, start, end);
	spans_remove(&areas, start, end);
	spans_remove(&named, start, end);
	spans_remove(&mappings, start, end);
	/* Heap would not be a mapping in a native run. */
	if ((flags & (MAP_ANONYMOUS | MAP_PRIVATE | MAP_HUGETLB)) ==
		    (MAP_ANONYMOUS | MAP_PRIVATE) &&
	    !continues_heap(call))
		count_mapping(start, end, call->a[2]);
	if (!(flags & MAP_ANONYMOUS)) {
		add_area(start, end, protection(call->a[2]) | file_flags(call), BLOCK_FILE,
			 call->a[5], call->path);
	} else {
		uint32_t area = anonymous_flags(flags) | protection(call->a[2]);

		if (flags & MAP_FIXED)
			before = data_before(start);
		if (before) {
			add_zeroed_data(before, start, end, area);
		} else if (continues_heap(call)) {
			add_area(start, end, area, BLOCK_HEAP,
				 heap_end - heap_start + heap_mapped, NULL);
			heap_mapped += end - start;
		} else {
			add_area(start, end, area, BLOCK_ANONYMOUS, 0, NULL);
		}
	}
	changed(down(start, REGION_BYTES), up(end, REGION_BYTES), false);
	changed(start, end, true);
}

static void after_munmap(uint64_t start, uint64_t length)
{
	uint64_t end = start + up(length, PAGE_BYTES);

	retire_all(start, end, true);
	remove_range(start, end);
	changed(down(start, REGION_BYTES), up(end, REGION_BYTES), false);
}

static void after_mprotect(uint64_t start, uint64_t length, uint64_t bits)
{
	uint64_t end = start + up(length, PAGE_BYTES);

	spans_cut(&areas, start, end);
	for (struct span *span = spans_from(&areas, start); span && span->start < end;
	     span = spans_from(&areas, span->end))
		span->flags = (span->flags & ~protection(7)) | protection(bits);
	changed(start, end, true);
	changed(down(start, REGION_BYTES), up(end, REGION_BYTES), false);
}

static void advise(uint64_t start, uint64_t end, uint32_t set, uint32_t clear)
{
	spans_cut(&areas, start, end);
	for (struct span *span = spans_from(&areas, start); span && span->start < end;
	     span = spans_from(&areas, span->end))
		span->flags = (span->flags & ~clear) | set;
}

static void after_madvise(uint64_t start, uint64_t length, uint64_t advice)
{
	uint64_t end = start + up(length, PAGE_BYTES);

	switch (advice) {
	case MADV_NOHUGEPAGE:
		advise(start, end, AREA_FORBIDDEN, AREA_ADVISED);
		break;
	case ADVISE_COLLAPSE:
		advise(start, end, AREA_COLLAPSED, 0);
		/* fall through */
	case MADV_HUGEPAGE:
		advise(start, end, AREA_ADVISED, AREA_FORBIDDEN);
		for (uint64_t region = up(start, REGION_BYTES);
		     region + REGION_BYTES <= end; region += REGION_BYTES)
			set_heap_small(region, false);
		break;
	case MADV_DONTNEED:
	case MADV_FREE:
		break;
	default:
		return;
	}
	changed(start, end, true);
	changed(down(start, REGION_BYTES), up(end, REGION_BYTES), false);
}

/* Moves the spans of a range, with their state. */
static void move_spans(struct spans *spans, uint64_t from, uint64_t length, uint64_t to)
{
	struct span moved[64];
	int count = 0;

	spans_cut(spans, from, from + length);
	for (struct span *span = spans_from(spans, from);
	     span && span->start < from + length && count < 64;
	     span = spans_from(spans, span->end))
		moved[count++] = *span;
	spans_remove(spans, from, from + length);
	for (int i = 0; i < count; i++) {
		moved[i].start += to - from;
		moved[i].end += to - from;
		moved[i].base += to - from;
		spans_put(spans, &moved[i]);
	}
}

/* The part by which a mapping grew is a block of its own with the same name. */
static void grow_area(uint64_t start, uint64_t end)
{
	const struct span *before = spans_at(&areas, start - 1);
	struct block block;
	uint32_t flags;

	if (!before)
		return;
	flags = before->flags;
	if (before->block == NO_BLOCK) {
		add_area(start, end, flags, BLOCK_ANONYMOUS, 0, NULL);
		return;
	}
	block = recording_blocks[before->block];
	add_area(start, end, flags, block.kind, block.offset + (start - before->base),
		 block.path);
}

/* It keeps its name, independent of its current length. */
static void grow_mapping(uint64_t start, uint64_t end)
{
	const struct span *before = spans_at(&mappings, start - 1);
	struct span span;

	spans_remove(&mappings, start, end);
	if (!before)
		return;
	span = *before;
	span.start = start;
	span.end = end;
	spans_put(&mappings, &span);
}

static void after_mremap(const struct memory_call *call, uint64_t to)
{
	uint64_t from = call->a[0], old = up(call->a[1], PAGE_BYTES);
	uint64_t length = up(call->a[2], PAGE_BYTES);
	uint64_t kept = old < length ? old : length;

	if (kept < old) {
		spans_remove(&events, from + kept, from + old);
		spans_remove(&areas, from + kept, from + old);
		spans_remove(&named, from + kept, from + old);
		spans_remove(&mappings, from + kept, from + old);
	}
	if (to != from) {
		spans_remove(&events, to, to + length);
		spans_remove(&areas, to, to + length);
		spans_remove(&named, to, to + length);
		spans_remove(&mappings, to, to + length);
		move_spans(&events, from, kept, to);
		move_spans(&areas, from, kept, to);
		move_spans(&named, from, kept, to);
		move_spans(&mappings, from, kept, to);
		changed(from, from + old, true);
	} else {
		changed(from + kept, from + old, true);
	}
	if (length > old) {
		grow_mapping(to + old, to + length);
		grow_area(to + old, to + length);
	}
	changed(down(from, REGION_BYTES), up(from + old, REGION_BYTES), false);
	changed(down(to, REGION_BYTES), up(to + length, REGION_BYTES), false);
}

/* --- the heap --- */

/* Heap regions that this step covers only in part keep 4 KiB pages. */
static void note_heap_step(uint64_t start, uint64_t end)
{
	for (uint64_t region = down(start, REGION_BYTES); region < end;
	     region += REGION_BYTES)
		if (region < start || region + REGION_BYTES > end)
			set_heap_small(region, true);
}

static void grow_heap(uint64_t start, uint64_t end)
{
	uint32_t flags = AREA_PRIVATE | AREA_HEAP | protection(PROT_READ | PROT_WRITE);

	while (start < end) {
		uint64_t chunk = heap_start + down(start - heap_start, HEAP_CHUNK);
		uint64_t stop = chunk + HEAP_CHUNK < end ? chunk + HEAP_CHUNK : end;
		struct span *before = spans_at(&areas, start - 1);

		if (start > chunk && before && before->flags == flags) {
			before->end = stop;
		} else {
			struct block_key key = {
				.kind = BLOCK_HEAP,
				.event = UINT32_MAX,
				.address = chunk,
				.length = HEAP_CHUNK,
				.offset = chunk - heap_start,
			};
			struct span span = {
				.start = start,
				.end = stop,
				.flags = flags,
				.block = before && start > chunk ? before->block
								 : recording_block(&key),
				.base = chunk,
			};
			spans_put(&areas, &span);
		}
		start = stop;
	}
}

static void after_brk(uint64_t result)
{
	uint64_t end = up(result, PAGE_BYTES);

	if (!heap_start) {
		heap_start = heap_end = end;
	} else if (end > heap_end) {
		note_heap_step(heap_end, end);
		grow_heap(heap_end, end);
	} else if (end < heap_end && end >= heap_start) {
		spans_remove(&events, end, heap_end);
		spans_remove(&areas, end, heap_end);
		changed(end, heap_end, true);
	} else {
		return;
	}
	changed(down(heap_end < end ? heap_end : end, REGION_BYTES),
		up(heap_end < end ? end : heap_end, REGION_BYTES), false);
	heap_end = end;
}

/* --- allocation events --- */

static void end_event(uint64_t address)
{
	struct span *span = spans_at(&events, down(address, PAGE_BYTES));
	uint64_t start, end;

	if (!span || span->base != down(address, PAGE_BYTES))
		return;
	start = span->base;
	end = start + (span->block == NO_BLOCK ? span->end - start
					       : recording_blocks[span->block].length);
	retire(&events, start, end, true);
	spans_remove(&events, start, end);
	changed(start, end, false);
}

static void begin_event(uint32_t event, uint64_t address, uint64_t length)
{
	uint64_t start = down(address, PAGE_BYTES), end = up(address + length, PAGE_BYTES);
	struct block_key key = {
		.kind = BLOCK_EVENT,
		.event = event,
		.address = start,
		.length = end - start,
	};
	struct span span = { .start = start, .end = end, .base = start };

	name_mapping(&key);
	span.block = recording_block(&key);
	spans_put(&events, &span);
	spans_put(&named, &span);
	changed(start, end, false);
}

static void announced(const struct memory_call *call)
{
	if (call->a[4] != recording->process || call->a[1] >= ADDRESSES ||
	    call->a[2] >= ADDRESSES)
		return;
	switch (call->a[3]) {
	case TOLL_EVENT_FREE:
		end_event(call->a[1]);
		break;
	case TOLL_EVENT_MOVE:
		if (call->a[5])
			end_event(call->a[5]);
		/* fall through */
	case TOLL_EVENT_MALLOC:
	case TOLL_EVENT_MMAP:
	case TOLL_EVENT_SHARED:
		begin_event(call->a[0], call->a[1], call->a[2]);
		break;
	}
}

/* --- memory that existed before the first system call --- */

struct host_mapping {
	uint64_t start, end, offset;
	char protection[5];
	char path[4096];
};

static bool read_mapping(FILE *file, struct host_mapping *mapping)
{
	char line[4352];
	int path = 0;

	if (!fgets(line, sizeof(line), file))
		return false;
	line[strcspn(line, "\n")] = 0;
	if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %n", &mapping->start, &mapping->end,
		   mapping->protection, &mapping->offset, &path) < 4 || !path)
		return false;
	strcpy(mapping->path, line + path);
	mapping->start -= recording->guest_base;
	mapping->end -= recording->guest_base;
	return true;
}

static uint32_t protection_of(const struct host_mapping *mapping)
{
	uint64_t bits = (mapping->protection[0] == 'r' ? PROT_READ : 0) |
			(mapping->protection[1] == 'w' ? PROT_WRITE : 0) |
			(mapping->protection[2] == 'x' ? PROT_EXEC : 0);

	return protection(bits);
}

/* Adds the part of a host mapping around `address` that is not in a known mapping. */
static void take_in(const struct host_mapping *mapping, uint64_t address)
{
	uint64_t start = mapping->start, end = mapping->end;
	const struct span *before;
	uint32_t flags = protection_of(mapping);

	for (struct span *span = spans_from(&areas, start); span && span->start < end;
	     span = spans_from(&areas, span->end)) {
		if (span->end <= address)
			start = span->end;
		else if (span->start < end)
			end = span->start;
	}
	before = data_before(start);
	if (mapping->path[0])
		add_area(start, end, flags, BLOCK_FILE,
			 mapping->offset + (start - mapping->start), mapping->path);
	else if (before)
		add_zeroed_data(before, start, end, flags | AREA_PRIVATE);
	else
		add_area(start, end, flags, BLOCK_STACK, 0, NULL);
	changed(start, end, false);
}

/*
 * Looks an unknown address up in the host's list of mappings: the program's own file, its
 * zeroed data and its stack were mapped by QEMU itself.
 */
static void discover(uint64_t address)
{
	FILE *file = fopen("/proc/self/maps", "re");
	struct host_mapping *two = file ? calloc(2, sizeof(*two)) : NULL;
	struct host_mapping *now = two, *last = two ? two + 1 : NULL;

	while (two && read_mapping(file, now)) {
		struct host_mapping *swap = last;

		if (now->start <= address && address < now->end) {
			/* Zeroed data is identified by the preceding file. */
			if (last->end == now->start && last->path[0] == '/' &&
			    !spans_at(&areas, last->start))
				take_in(last, last->start);
			take_in(now, address);
			break;
		}
		last = now;
		now = swap;
	}
	free(two);
	if (file)
		fclose(file);
}

/* --- system calls --- */

static void read_path(struct memory_call *call)
{
	char link[64];
	char path[4096];
	ssize_t length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", (int)call->a[4]);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		length = 0;
	path[length] = 0;
	if (length >= RECORDING_PATH)
		memmove(path, path + length - (RECORDING_PATH - 1), RECORDING_PATH);
	strcpy(call->path, path);
}

/* Whether a descriptor is of a file on tmpfs, as memfds are. */
static bool is_in_memory(int fd)
{
	struct statfs state;

	return !fstatfs(fd, &state) && state.f_type == TMPFS_MAGIC;
}

static bool aligned(uint64_t address, uint64_t length)
{
	return address % PAGE_BYTES == 0 && length && address + length < ADDRESSES;
}

void memory_before(struct memory_call *call)
{
	const uint64_t *a = call->a;

	if (call->number == SYS_mmap && !(a[3] & MAP_ANONYMOUS)) {
		read_path(call);
		call->in_memory = is_in_memory(a[4]);
	}
	pthread_rwlock_wrlock(&lock);
	switch (call->number) {
	case SYS_munmap:
		if (aligned(a[0], a[1]))
			after_munmap(a[0], a[1]);
		break;
	case SYS_mmap:
		if ((a[3] & MAP_FIXED) && aligned(a[0], a[1]))
			retire_all(a[0], a[0] + up(a[1], PAGE_BYTES), true);
		break;
	case SYS_mremap:
		if (aligned(a[0], a[1]))
			retire_all(a[0], a[0] + up(a[1], PAGE_BYTES), false);
		break;
	case SYS_madvise:
		if ((a[2] == MADV_DONTNEED || a[2] == MADV_FREE) && aligned(a[0], a[1]))
			retire_all(a[0], a[0] + up(a[1], PAGE_BYTES), false);
		break;
	case SYS_brk:
		if (a[0] >= heap_start && a[0] < heap_end)
			retire_all(up(a[0], PAGE_BYTES), heap_end, false);
		break;
	case SYS_prctl:
		if (a[0] == THP_DISABLE) {
			bool partly = a[1] && (a[2] & THP_EXCEPT_ADVISED);

			thp_disabled = a[1] && !partly;
			if (partly && mode == THP_ALWAYS)
				mode = THP_MADVISE;
			changed(0, ADDRESSES, false);
		}
		break;
	case TOLL_MAGIC_SYSCALL:
		announced(call);
		break;
	}
	pthread_rwlock_unlock(&lock);
}

void memory_after(struct memory_call *call, int64_t result)
{
	const uint64_t *a = call->a;
	bool short_of_heap = call->number == SYS_brk && a[0] > (uint64_t)result;

	if (result < 0 && result >= -4095) {
		call->short_of_heap = false;
		return;
	}
	pthread_rwlock_wrlock(&lock);
	switch (call->number) {
	case SYS_mmap:
		after_mmap(call, result);
		break;
	case SYS_mprotect:
		after_mprotect(a[0], a[1], a[2]);
		break;
	case SYS_madvise:
		after_madvise(a[0], a[1], a[2]);
		break;
	case SYS_mremap:
		if (!(a[3] & REMAP_DONTUNMAP))
			after_mremap(call, result);
		break;
	case SYS_brk:
		after_brk(result);
		break;
	}
	call->short_of_heap = short_of_heap;
	pthread_rwlock_unlock(&lock);
}

void memory_scan_all(void)
{
	pthread_rwlock_wrlock(&lock);
	retire_all(0, ADDRESSES, false);
	pthread_rwlock_unlock(&lock);
}
