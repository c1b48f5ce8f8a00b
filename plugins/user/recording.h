/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The recording: the simulator's output, in a file (or memfd) that is mapped shared from
 * the start, so that nothing is lost if the program crashes, is killed, or closes its
 * descriptors.
 *
 *	header		RECORDING_HEADER bytes
 *	blocks		`blocks_max` of struct block
 *	pages		`pages_max` of struct page
 *
 * The file is sparse: only used parts take space. A block is a named piece of the guest's
 * memory; page `first + i` has the counts of its i-th 4 KiB page. Little-endian.
 * crates/toll-observe/src/record/sim/recording.rs has the same layouts; a test compares the
 * sizes and offsets.
 */
#ifndef TOLL_RECORDING_H
#define TOLL_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#define RECORDING_MAGIC "TOLLSIM1"
#define RECORDING_HEADER 4096
#define RECORDING_PATH 192

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

/* Bits of block.flags. */
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
};

struct block {
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
	char path[RECORDING_PATH];
	/*
	 * The mapping that contained it at its start (0: none that is counted), and its
	 * offset there.
	 */
	uint64_t mapping;
	uint64_t mapping_at;
};

/*
 * A private anonymous mapping, by the properties that identify it in any run: its length
 * class (the largest power of two not above its length), its protection, and the number
 * of earlier mappings with both.
 */
#define MAPPING(class, protection, ordinal)                          \
	(1ull << 63 | (uint64_t)(class) << 40 | (uint64_t)(protection) << 32 | \
	 (uint32_t)(ordinal))

/* Bits of page.flags. */
enum {
	/* Touched (seen by the model, or present at the block's end). */
	PAGE_TOUCHED = 1,
	/* Backed by a huge page with the page sizes of a native run. */
	PAGE_HUGE = 2,
	/* Could be backed by a huge page. */
	PAGE_ELIGIBLE = 4,
};

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

/* Bits of header.flags. */
enum {
	/* The program ended, and everything was counted. */
	RECORDING_COMPLETE = 1,
	/* The program replaced itself by exec; the new program was not simulated. */
	RECORDING_EXECED = 2,
	/* Blocks or page records ran out; `lost` counts accesses without a page. */
	RECORDING_FULL = 4,
};

struct header {
	char magic[8];
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
	char exec_path[RECORDING_PATH];
	/* The program itself. */
	char program[RECORDING_PATH];
};

/* Opens the recording; the file must exist. Returns false on failure, with errno set. */
bool recording_open(const char *path);

/* The open recording. */
extern struct header *recording;
extern struct block *recording_blocks;
extern struct page *recording_pages;

struct block_key {
	enum block_kind kind;
	uint32_t event;
	uint64_t address, length, offset;
	uint64_t mapping, mapping_at;
	const char *path;
};

#define PAGE_BYTES 4096ull
#define REGION_BYTES (2ull << 20)

/* Finds or creates a block of this key; returns its index, or NO_BLOCK when full. */
#define NO_BLOCK UINT32_MAX
uint32_t recording_block(const struct block_key *key);

/*
 * Returns the record of the page at `address` of a block that starts at `base`; NULL if
 * past its end.
 */
struct page *recording_page(uint32_t block, uint64_t base, uint64_t address);

/*
 * Marks the pages of a block that are present in memory, before it is unmapped or the
 * program ends; together with the flags that `region_flags` returns for the 2 MiB region
 * around an address.
 */
void recording_scan(uint32_t block, uint64_t base, uint64_t start, uint64_t end,
		    uint32_t (*region_flags)(uint64_t address));

#endif
