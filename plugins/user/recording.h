/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The recording: what the simulator leaves behind, in a file (or memfd) that
 * is mapped shared from the start, so that nothing is lost if the program
 * crashes, is killed, or closes its descriptors.
 *
 *	header		RECORDING_HEADER bytes
 *	blocks		`blocks_max` of struct block
 *	pages		`pages_max` of struct page
 *
 * The file is sparse: only what was used takes room. A block is a named piece
 * of the guest's memory; page `first + i` has the counts of its i-th 4 KiB
 * page. Little-endian. crates/tollfree/src/record/sim/recording.rs has the
 * same layouts; a test compares the sizes and offsets.
 */
#ifndef TOLL_RECORDING_H
#define TOLL_RECORDING_H

#include <stdbool.h>
#include <stdint.h>

#define RECORDING_MAGIC "TOLLSIM1"
#define RECORDING_HEADER 4096
#define RECORDING_PATH 192

/* What a block is. */
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
	/* Stands for more than one block of the same place and size, one after the other. */
	BLOCK_REUSED = 2,
	/* `page.flags` says for all pages which were present when the block ended. */
	BLOCK_SCANNED = 4,
};

struct block {
	uint32_t kind;
	uint32_t flags;
	uint32_t event;
	uint32_t pad;
	/* Guest address of its first page, and bytes (whole pages). */
	uint64_t address;
	uint64_t length;
	/* Index of its first page record. */
	uint64_t first;
	/* Bytes from its anchor's start (file offset, offset in the heap) to its first page. */
	uint64_t offset;
	/* Of a file: path, cut at the front if too long. */
	char path[RECORDING_PATH];
	/* The mapping that it lay in when it came, 0: none that is counted, and where. */
	uint64_t mapping;
	uint64_t mapping_at;
};

/*
 * A private anonymous mapping, by what names it in any run: its length class (the power of two
 * that its length is not below), its protection, and how many of both there were before.
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
	/* Counted accesses, and of those the misses of each level. */
	uint64_t accesses;
	/* Page sizes as natively: misses of L1 that hit L2; walks. */
	uint64_t l2_hits;
	uint64_t walks;
	/* Walks if every eligible region were huge. */
	uint64_t walks_huge;
	/* Sum over 4 KiB walks of 256 * log2(reuse distance of the entry's line, in bytes of data). */
	uint64_t reuse_sum;
	uint32_t reuse_count;
	/* Walks whose address is known to depend on loads, and known not to. */
	uint32_t dependent;
	uint32_t independent;
	uint32_t flags;
	/* Of the L2 hits, those that would hit L1 if every eligible region were huge. */
	uint64_t l2_spared;
};

/* Bits of header.flags. */
enum {
	/* The program ended, and everything was counted. */
	RECORDING_COMPLETE = 1,
	/* The program replaced itself: what followed was not simulated. */
	RECORDING_EXECED = 2,
	/* Blocks or page records ran out; `lost` counts what came to no page. */
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
	/* In use. */
	uint64_t blocks;
	uint64_t pages;
	/* Calls of the access callback: all, and while counting. Their ratio scales counts up. */
	uint64_t seen;
	uint64_t counted;
	/* Accesses, walks and walks with huge pages, while counting, pages or not. */
	uint64_t accesses;
	uint64_t walks;
	uint64_t walks_huge;
	/* Counting windows. */
	uint64_t windows;
	/* Accesses to addresses that belong to no known mapping. */
	uint64_t lost;
	/* Host address less guest address. */
	uint64_t guest_base;
	uint32_t process;
	uint32_t threads;
	/* fork and execve calls of the program and its children; not simulated. */
	uint32_t forks;
	uint32_t execs;
	/* The last program that execve was asked for. */
	char exec_path[RECORDING_PATH];
	/* The program itself. */
	char program[RECORDING_PATH];
};

/* Opens the recording, of which the file exists already. False: cannot, reason in errno. */
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

/* A block of this key, new or used before; its index, or NO_BLOCK when full. */
#define NO_BLOCK UINT32_MAX
uint32_t recording_block(const struct block_key *key);

/* The record of the page at `address` of a block that starts at `base`; NULL if past its end. */
struct page *recording_page(uint32_t block, uint64_t base, uint64_t address);

/*
 * Marks which pages of a block are present in memory, before it is unmapped or the program
 * ends; with the flags of the 2 MiB region around each address that `region_flags` gets.
 */
void recording_scan(uint32_t block, uint64_t base, uint64_t start, uint64_t end,
		    uint32_t (*region_flags)(uint64_t address));

#endif
