/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generated from crates/toll-wire, which documents the files: do not edit. To generate it:
 *
 *	cargo run -p toll-wire --example header >plugins/user/wire.h
 */
#ifndef TOLL_WIRE_H
#define TOLL_WIRE_H

#include <stdint.h>

/* Bytes of a base page, and of the region that a huge page can map. */
#define PAGE_BYTES 4096ull
#define REGION_BYTES 2097152ull

/*
 * The preload library reports an allocation event to the simulator by this unused system
 * call number. Arguments: event index, address, length, kind, process, old address (of a
 * move).
 */
#define TOLL_MAGIC_SYSCALL 0x746f6c6c

/* Kind of an event. */
enum toll_event {
	/* A block from malloc, calloc, memalign, operator new... */
	TOLL_EVENT_MALLOC = 1,
	/* An anonymous mapping. */
	TOLL_EVENT_MMAP = 2,
	/*
	 * realloc or mremap: `old` is the previous address; the event keeps its identity
	 * and has the new one.
	 */
	TOLL_EVENT_MOVE = 3,
	/* free or munmap. */
	TOLL_EVENT_FREE = 4,
	/*
	 * The process image or a fork of it started: `address` is the process id, `old`
	 * the parent's after a fork (0: a new image), the only frame is the program
	 * itself.
	 */
	TOLL_EVENT_PROCESS = 5,
	/* A shared anonymous mapping. */
	TOLL_EVENT_SHARED = 6,
};

/*
 * The recording: RECORDING_HEADER bytes, `blocks_max` of struct block, `pages_max` of
 * struct page.
 */
#define RECORDING_MAGIC "TOLLSIM1"
#define RECORDING_HEADER 4096
#define RECORDING_PATH 192

/* The run as a whole. */
struct header {
	char magic[8];
	/* `RECORDING_HEADER`, and the sizes of a block and a page, bytes. */
	uint32_t header_size;
	uint32_t block_size;
	uint32_t page_size;
	uint32_t flags;
	uint64_t blocks_max;
	uint64_t pages_max;
	/* Number in use. */
	uint64_t blocks;
	uint64_t pages;
	/*
	 * Calls of the access callback: all, and while counting. Their ratio scales
	 * counts up.
	 */
	uint64_t seen;
	uint64_t counted;
	/*
	 * Accesses, walks and walks with huge pages, while counting, with or without
	 * pages.
	 */
	uint64_t accesses;
	uint64_t walks;
	uint64_t walks_huge;
	/* Counting windows. */
	uint64_t windows;
	/* Accesses to addresses outside any known mapping. */
	uint64_t lost;
	/* Host address minus guest address. */
	uint64_t guest_base;
	uint32_t process;
	uint32_t threads;
	/* fork and execve calls of the program and its children; not simulated. */
	uint32_t forks;
	uint32_t execs;
	/* The program of the last execve. */
	char exec_path[192];
	/* The program itself. */
	char program[192];
};
_Static_assert(sizeof(struct header) == 520, "no holes");

/* Bits of `header.flags`. */
enum {
	/* The program ended, and everything was counted. */
	RECORDING_COMPLETE = 1,
	/* The program replaced itself by exec; the new program was not simulated. */
	RECORDING_EXECED = 2,
	/* Blocks or page records ran out; `lost` counts accesses without a page. */
	RECORDING_FULL = 4,
};

/* A named piece of the guest's memory. */
struct block {
	/* The `block_kind`, stored last: 0 means "not written yet". */
	uint32_t kind;
	uint32_t flags;
	uint32_t event;
	uint32_t pad;
	/* Guest address of its first page, and its length in bytes (whole pages). */
	uint64_t address;
	uint64_t length;
	/* Index of its first page record. */
	uint64_t first;
	/*
	 * Bytes from its site's start (file offset, offset in the heap) to its first
	 * page.
	 */
	uint64_t offset;
	/* For a file: path, cut at the front if too long. */
	char path[192];
	/*
	 * The mapping that contained it at its start (0: none that is counted), packed by
	 * `MAPPING`, and its offset there.
	 */
	uint64_t mapping;
	uint64_t mapping_at;
};
_Static_assert(sizeof(struct block) == 256, "no holes");

/* Kind of a block. */
enum block_kind {
	/* An allocation event of the preload library: `event` is its index. */
	BLOCK_EVENT = 1,
	/* Other anonymous memory. */
	BLOCK_ANONYMOUS = 2,
	BLOCK_HEAP = 3,
	BLOCK_STACK = 4,
	/* A file mapping, or the zeroed memory that follows a program's data. */
	BLOCK_FILE = 5,
};

/* Bits of `block.flags`. */
enum {
	/* Unmapped or freed before the end. */
	BLOCK_FREED = 1,
	/*
	 * Represents more than one block of the same address and size, one after the
	 * other.
	 */
	BLOCK_REUSED = 2,
	/* `page.flags` of all pages tell which were present when the block ended. */
	BLOCK_SCANNED = 4,
	/* A file in memory (tmpfs, memfd) that is mapped shared and writable. */
	BLOCK_SHARED = 8,
};

/*
 * A private anonymous mapping, by the properties that identify it in any run: its length
 * class (the largest power of two not above its length), its protection, and the number
 * of earlier mappings with both.
 */
#define MAPPING(class, protection, ordinal) \
	(0x8000000000000000ull | (uint64_t)(class) << 40 | \
	 (uint64_t)(protection) << 32 | (uint32_t)(ordinal))

/* Counts of a 4 KiB page. */
struct page {
	/* Counted accesses, and the misses of each level among them. */
	uint64_t accesses;
	/* Native page sizes: L1 misses that hit L2; walks. */
	uint64_t l2_hits;
	uint64_t walks;
	/* Walks if every eligible region were huge. */
	uint64_t walks_huge;
	/*
	 * Sum over 4 KiB walks of 256 * log2(reuse distance of the entry's line, in bytes
	 * of data).
	 */
	uint64_t reuse_sum;
	uint32_t reuse_count;
	/* Walks with an address known to depend on loads, and known not to. */
	uint32_t dependent;
	uint32_t independent;
	uint32_t flags;
	/* L2 hits that would hit L1 if every eligible region were huge. */
	uint64_t l2_spared;
};
_Static_assert(sizeof(struct page) == 64, "no holes");

/* Bits of `page.flags`. */
enum {
	/* Touched (seen by the model, or present at the block's end). */
	PAGE_TOUCHED = 1,
	/* Backed by a huge page with the page sizes of a native run. */
	PAGE_HUGE = 2,
	/* Could be backed by a huge page. */
	PAGE_ELIGIBLE = 4,
};

#endif
