/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reuse distance of page-table cache lines: the number of other lines that walks have
 * read since a walk last read this one. A line holds eight entries, which map 32 KiB of
 * data, so a distance is given in bytes of data.
 *
 * Method: walks are numbered. For each line the number of its last walk is stored, and
 * for each epoch of 16 walks the number of lines with their last walk in it, in a Fenwick
 * tree. The distance is the number of lines with a last walk in later epochs, plus half
 * of those in the line's own; at most the number of walks since. The latest 131,072
 * epochs (2 million walks) are distinct; older ones are merged. A first walk has no
 * distance: it gets that of the most distant known line.
 */
#ifndef TOLL_REUSE_H
#define TOLL_REUSE_H

#include <stdint.h>

struct reuse;

/* NULL if memory is short. */
struct reuse *reuse_new(void);
void reuse_free(struct reuse *reuse);

/*
 * Records a walk for a 4 KiB page; returns the number of distinct other lines since the
 * last walk of its line (0: none).
 */
uint64_t reuse_walk(struct reuse *reuse, uint64_t address);

/* Returns 256 * log2 of the bytes of data that `lines` lines and this one map. */
uint32_t reuse_log2(uint64_t lines);

#endif
