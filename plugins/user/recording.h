/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The recording: the simulator's output, in a file (or memfd) that is mapped shared from
 * the start, so that nothing is lost if the program crashes, is killed, or closes its
 * descriptors. It is sparse: only used parts take space. See wire.h for its layout.
 */
#ifndef TOLL_RECORDING_H
#define TOLL_RECORDING_H

#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

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
