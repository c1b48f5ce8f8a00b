/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_TEST_PGTABLE_H
#define TOLLFREE_TEST_PGTABLE_H

/* What an entry of each level maps on x86-64. */
#define PAGE_SIZE	(1UL << 12)
#define PMD_SIZE	(1UL << 21)
#define PUD_SIZE	(1UL << 30)

#endif /* TOLLFREE_TEST_PGTABLE_H */
