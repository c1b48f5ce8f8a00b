/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Morsels that devices access by DMA, through the morsel's own page tables.
 *
 * The contract
 * ============
 *
 * A device holds a whole morsel, without missing pages (fs/morsel/hold.c). A held
 * morsel keeps its size, its pages and its tables: what would change them fails with
 * EBUSY at once, without waiting and without looking at pages. A sealed one keeps them in
 * any case. The hold has a reference to the file, so nothing is freed before its end.
 *
 * VT-d's first-stage tables have the format of the CPU's. An entry of 1 GiB of a domain
 * (level 3 of its tables) is a copy of the morsel's PUD entry, as that of a process is
 * (drivers/iommu/intel/morsel.c). Attaching 1 GiB is one store, and so is less:
 *
 *	morsel_hold()
 *	reserve the range in the IOAS: nothing else is mapped there
 *	allocate the upper tables of the domain
 *	set the empty entries
 *	flush the write buffer; first-stage tables have no cached absent entries
 *
 * Detaching:
 *
 *	clear the entries
 *	invalidate the domain: IOTLB, paging-structure caches, device TLBs; waits for the
 *	end, and for DMA that is under way
 *	release the range
 *	morsel_unhold()
 *
 * The invalidation is that of the whole domain, as a detach from a process flushes its
 * whole address space: a page-selective one leaves open which levels it covers.
 *
 * The reserved range also keeps the driver from freeing the upper tables, or those of the
 * morsel: it frees tables of ranges that it unmaps as a whole, and no mapping contains
 * the range.
 *
 * The bits of the morsel's entries, at each level, as VT-d has them:
 *
 *	P, R/W		the same. Leaves of a sealed morsel have no R/W: a write faults.
 *			Upper entries do not restrict access
 *	U/S		set at all levels. A request without PASID is one of a user
 *	PWT, PCD, PAT	clear: write-back
 *	A, D		set when the leaf is made; hardware that finds A clear sets it by
 *			an atomic access, as a CPU does. D without R/W does not occur: the
 *			kernel keeps it in bit 58
 *	PS		the same: leaves of 2 MiB; of 1 GiB only with FS1GP, else
 *			EOPNOTSUPP
 *	G		clear
 *	9 to 11, 52 to 58	for software, and ignored. Bit 10 (EA) is clear and used only
 *			if the PASID entry asks for it, which Linux does not
 *	59 to 62	clear: a protection key exists only in a process
 *	XD		ignored: requests without PASID do not execute
 *
 * Where the walks of the IOMMU are not coherent, the tables are written back before they
 * are attached: later no entry is set.
 */
#ifndef _LINUX_MORSEL_DEVICE_H
#define _LINUX_MORSEL_DEVICE_H

#include <linux/types.h>

struct file;
struct intel_iommu;
struct iommu_domain;

/* fs/morsel/hold.c */

bool morsel_is_enabled(void);
long morsel_hold(struct file *file);
void morsel_unhold(struct file *file);
u64 morsel_held_entry(struct file *file, unsigned long slot);

#ifdef CONFIG_MORSEL_DEVICES

/* drivers/iommu/intel/morsel.c */

int intel_iommu_attach_morsel(struct iommu_domain *domain, unsigned long iova,
			      struct file *file, unsigned long slots);
void intel_iommu_detach_morsel(struct iommu_domain *domain, unsigned long iova,
			       unsigned long slots);
bool morsel_wants_first_stage(const struct intel_iommu *iommu, u32 flags);

#else

/* A macro: the arguments are not evaluated. */
#define morsel_wants_first_stage(...)	false

#endif /* CONFIG_MORSEL_DEVICES */

#endif /* _LINUX_MORSEL_DEVICE_H */
