/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_TEST_PGTABLE_H
#define TOLLFREE_TEST_PGTABLE_H

/* Sizes mapped by an entry of each level on x86-64. */
#define PAGE_SIZE	(1UL << 12)
#define PMD_SIZE	(1UL << 21)
#define PUD_SIZE	(1UL << 30)

#endif /* TOLLFREE_TEST_PGTABLE_H */
