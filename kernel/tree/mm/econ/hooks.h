/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the rest of mm/ asks the estimator. Each call stands where stock code has
 * decided to do something, and may only say no to it; what the user has decided
 * by MADV_HUGEPAGE or MADV_COLLAPSE is not asked about.
 */
#ifndef _MM_ECON_HOOKS_H
#define _MM_ECON_HOOKS_H

#include <linux/jump_label.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>

#ifdef CONFIG_ECON

/* The machine observes or acts. */
DECLARE_STATIC_KEY_FALSE(econ_key);

bool __econ_may_be_huge(struct vm_fault *vmf);
unsigned long __econ_orders(struct vm_fault *vmf, unsigned long orders);
gfp_t __econ_gfp(struct vm_area_struct *vma, unsigned long address, gfp_t gfp);
bool __econ_may_promote(struct vm_area_struct *vma, unsigned long address);

static inline bool econ_is_asked(const struct vm_area_struct *vma)
{
	return static_branch_unlikely(&econ_key) &&
	       unlikely(rcu_access_pointer(vma->vm_mm->econ));
}

/**
 * econ_may_be_huge - whether a fault may make a region huge
 * @vmf: the fault; nothing of the region is mapped
 *
 * Return: false if that does not pay.
 */
static inline bool econ_may_be_huge(struct vm_fault *vmf)
{
	return !econ_is_asked(vmf->vma) || __econ_may_be_huge(vmf);
}

/**
 * econ_orders - which blocks a fault may map
 * @vmf: the fault
 * @orders: a bit for each order that fits, smaller than a huge page's
 *
 * Return: those of @orders that pay.
 */
static inline unsigned long econ_orders(struct vm_fault *vmf,
					unsigned long orders)
{
	return econ_is_asked(vmf->vma) ? __econ_orders(vmf, orders) : orders;
}

/**
 * econ_gfp - how hard a fault may try to get a block
 * @vma: where
 * @address: where in it
 * @gfp: as hard as stock code would
 *
 * Return: @gfp, without what does not pay.
 */
static inline gfp_t econ_gfp(struct vm_area_struct *vma, unsigned long address,
			     gfp_t gfp)
{
	return econ_is_asked(vma) ? __econ_gfp(vma, address, gfp) : gfp;
}

/**
 * econ_may_promote - whether khugepaged may look at a region
 * @vma: where
 * @address: the region
 *
 * Return: false if copying it together does not pay.
 */
static inline bool econ_may_promote(struct vm_area_struct *vma,
				    unsigned long address)
{
	return !econ_is_asked(vma) || __econ_may_promote(vma, address);
}

#else /* !CONFIG_ECON */

static inline bool econ_may_be_huge(struct vm_fault *vmf)
{
	return true;
}

static inline unsigned long econ_orders(struct vm_fault *vmf,
					unsigned long orders)
{
	return orders;
}

static inline gfp_t econ_gfp(struct vm_area_struct *vma, unsigned long address,
			     gfp_t gfp)
{
	return gfp;
}

static inline bool econ_may_promote(struct vm_area_struct *vma,
				    unsigned long address)
{
	return true;
}

#endif /* !CONFIG_ECON */

#endif /* _MM_ECON_HOOKS_H */
