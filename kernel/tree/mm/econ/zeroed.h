/* SPDX-License-Identifier: GPL-2.0-only */
/* Hooks for blocks that are zeroed ahead, see prezero.h. */
#ifndef _MM_ECON_ZEROED_H
#define _MM_ECON_ZEROED_H

#include <linux/gfp.h>
#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/mmzone.h>

#include "decision.h"
#include "watch.h"

#ifdef CONFIG_ECON

/* fault.c */
struct folio *__econ_alloc_huge(gfp_t gfp, struct vm_area_struct *vma,
				unsigned long address);

/* measure.c */
void __econ_zero_huge(struct folio *folio, unsigned long address);

/* prezero_stock.c */
void __econ_was_zeroed(struct folio *folio);
void __econ_put_block(struct folio *folio);
unsigned long econ_zeroed_blocks(void);

/* prezero_shortage.c */
bool __econ_refill(struct zone *zone, unsigned int order, unsigned long mark,
		   int highest_zoneidx, unsigned int alloc_flags);
void __econ_balance(pg_data_t *pgdat, unsigned int order, int highest_zoneidx);
void econ_drain_all(void);
void __econ_drain_zone(struct zone *zone);
void econ_block_zone(struct zone *zone);
void econ_unblock_zone(struct zone *zone);

/**
 * econ_alloc_huge - allocate a huge page for a fault
 * @gfp: as for vma_alloc_folio()
 * @vma: the mapping
 * @address: the region
 *
 * Context: may sleep if @gfp allows it.
 * Return: a huge page, possibly zeroed ahead, or NULL.
 */
static inline struct folio *econ_alloc_huge(gfp_t gfp,
					    struct vm_area_struct *vma,
					    unsigned long address)
{
	if (econ_is_asked(vma))
		return __econ_alloc_huge(gfp, vma, address);
	return vma_alloc_folio(gfp, HPAGE_PMD_ORDER, vma, address, true);
}

/**
 * econ_is_zeroed - whether a huge page was zeroed ahead
 * @folio: return value of econ_alloc_huge()
 *
 * The mark of the prezero thread stays until econ_zero_huge() or econ_put_huge().
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool econ_is_zeroed(const struct folio *folio)
{
	return unlikely(folio->private);
}

/**
 * econ_put_huge - free a huge page that a fault cannot use
 * @folio: return value of econ_alloc_huge(), not written to
 *
 * Context: process; takes a spinlock.
 */
static inline void econ_put_huge(struct folio *folio)
{
	if (econ_is_zeroed(folio))
		__econ_put_block(folio);
	else
		folio_put(folio);
}

/**
 * econ_zero_huge - clear a huge page for a fault, unless it was zeroed ahead
 * @folio: return value of econ_alloc_huge()
 * @address: address of the fault
 *
 * Context: may sleep.
 */
static inline void econ_zero_huge(struct folio *folio, unsigned long address)
{
	if (econ_is_zeroed(folio))
		__econ_was_zeroed(folio);
	else if (static_branch_unlikely(&econ_watch_key))
		__econ_zero_huge(folio, address);
	else
		folio_zero_user(folio, address);
}

/**
 * econ_refill - free kept blocks of a zone for an allocation
 * @zone: the zone
 * @order: order of the allocation
 * @mark: watermark that the zone failed
 * @highest_zoneidx: highest zone of the allocation
 * @alloc_flags: flags of the allocation
 *
 * Context: any; takes a spinlock.
 * Return: true if the zone meets @mark now.
 */
static inline bool econ_refill(struct zone *zone, unsigned int order,
			       unsigned long mark, int highest_zoneidx,
			       unsigned int alloc_flags)
{
	return static_branch_unlikely(&econ_key) &&
	       __econ_refill(zone, order, mark, highest_zoneidx, alloc_flags);
}

/**
 * econ_balance - free kept blocks of a node before kswapd reclaims
 * @pgdat: the node
 * @order: order that kswapd reclaims for
 * @highest_zoneidx: highest zone that kswapd balances
 *
 * Context: kswapd.
 */
static inline void econ_balance(pg_data_t *pgdat, unsigned int order,
				int highest_zoneidx)
{
	if (static_branch_unlikely(&econ_key))
		__econ_balance(pgdat, order, highest_zoneidx);
}

/**
 * econ_drain_zone - free all kept blocks of a zone
 * @zone: the zone
 *
 * Context: may sleep.
 */
static inline void econ_drain_zone(struct zone *zone)
{
	if (static_branch_unlikely(&econ_key))
		__econ_drain_zone(zone);
}

/**
 * econ_pages - number of pages that are zeroed ahead and kept
 *
 * Context: any.
 * Return: the number.
 */
static inline unsigned long econ_pages(void)
{
	if (static_branch_unlikely(&econ_key))
		return econ_zeroed_blocks() * HPAGE_PMD_NR;
	return 0;
}

#else /* !CONFIG_ECON */

/* Macros, so that not even the arguments change the object code. */
#define econ_alloc_huge(gfp, vma, address)	\
	vma_alloc_folio(gfp, HPAGE_PMD_ORDER, vma, address, true)
#define econ_drain_zone(...)	do { } while (0)

static inline void econ_put_huge(struct folio *folio)
{
	folio_put(folio);
}

static inline void econ_zero_huge(struct folio *folio, unsigned long address)
{
	folio_zero_user(folio, address);
}

static inline bool econ_refill(struct zone *zone, unsigned int order,
			       unsigned long mark, int highest_zoneidx,
			       unsigned int alloc_flags)
{
	return false;
}

static inline void econ_balance(pg_data_t *pgdat, unsigned int order,
				int highest_zoneidx)
{
}

static inline void econ_drain_all(void)
{
}

static inline void econ_block_zone(struct zone *zone)
{
}

static inline void econ_unblock_zone(struct zone *zone)
{
}

static inline unsigned long econ_pages(void)
{
	return 0;
}

#endif /* !CONFIG_ECON */

#endif /* _MM_ECON_ZEROED_H */
