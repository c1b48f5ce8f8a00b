// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attach the page tables of morsels to first-stage tables of a domain. The contract is in
 * linux/morsel_device.h.
 */

#include <linux/export.h>
#include <linux/iommu.h>
#include <linux/morsel_device.h>
#include <linux/pgtable.h>
#include <asm/cacheflush.h>

#include "../iommu-pages.h"
#include "iommu.h"

/**
 * morsel_wants_first_stage - whether a domain of user space gets first-stage tables
 * @iommu: the IOMMU
 * @flags: IOMMU_HWPT_ALLOC_* flags: for nesting or for dirty tracking
 *
 * Context: any.
 * Return: true if so, false for second-stage tables.
 */
bool morsel_wants_first_stage(const struct intel_iommu *iommu, u32 flags)
{
	return morsel_is_enabled() && sm_supported(iommu) && ecap_flts(iommu->ecap) && !flags;
}

/* Level of the entries that map 1 GiB: those of a PUD table. */
#define MORSEL_LEVEL	3

static void morsel_write_back(const struct dmar_domain *domain, void *memory, size_t size)
{
	if (!domain->iommu_coherency)
		clflush_cache_range(memory, size);
}

/* Return: the table that an entry of the domain leads to; NULL without memory. */
static struct dma_pte *morsel_next_table(struct dmar_domain *domain, struct dma_pte *entry)
{
	u64 old = 0, new;
	void *table;

	if (dma_pte_present(entry))
		return phys_to_virt(dma_pte_addr(entry));
	table = iommu_alloc_page_node(domain->nid, GFP_KERNEL_ACCOUNT);
	if (!table)
		return NULL;
	morsel_write_back(domain, table, VTD_PAGE_SIZE);
	new = virt_to_phys(table) | DMA_PTE_READ | DMA_PTE_WRITE | DMA_FL_PTE_US |
	      DMA_FL_PTE_ACCESS;
	/* Mappings allocate tables concurrently, in the same way. */
	if (!try_cmpxchg64(&entry->val, &old, new))
		iommu_free_page(table);
	else
		morsel_write_back(domain, entry, sizeof(*entry));
	return phys_to_virt(dma_pte_addr(entry));
}

/* Return: the entry of the domain for a GiB; NULL without memory. */
static struct dma_pte *morsel_find_entry(struct dmar_domain *domain, unsigned long iova)
{
	unsigned long pfn = iova >> VTD_PAGE_SHIFT;
	struct dma_pte *table = domain->pgd;
	int level;

	for (level = agaw_to_level(domain->agaw); table && level > MORSEL_LEVEL; level--)
		table = morsel_next_table(domain, &table[pfn_level_offset(pfn, level)]);
	return table ? &table[pfn_level_offset(pfn, MORSEL_LEVEL)] : NULL;
}

/* Call @call for each table that an entry leads to, lower ones first. */
static void morsel_each_table(struct dma_pte entry, int level, void (*call)(void *table))
{
	struct dma_pte *table = phys_to_virt(dma_pte_addr(&entry));
	int i;

	if ((entry.val & (DMA_FL_PTE_PRESENT | DMA_PTE_LARGE_PAGE)) != DMA_FL_PTE_PRESENT)
		return;
	for (i = 0; level > 2 && i < PTRS_PER_PMD; i++)
		morsel_each_table(table[i], level - 1, call);
	call(table);
}

static void morsel_write_back_table(void *table)
{
	clflush_cache_range(table, VTD_PAGE_SIZE);
}

/* Mappings that were there may have left tables, now empty. */
static void morsel_replace_entry(struct dmar_domain *domain, struct dma_pte *entry,
				 u64 value)
{
	struct dma_pte old = { xchg(&entry->val, value) };

	morsel_write_back(domain, entry, sizeof(*entry));
	if (!dma_pte_present(&old))
		return;
	cache_tag_flush_all(domain);
	morsel_each_table(old, MORSEL_LEVEL, iommu_free_page);
}

static int morsel_set_entry(struct dmar_domain *domain, unsigned long iova, u64 value)
{
	struct dma_pte *entry = morsel_find_entry(domain, iova), new = { value };

	if (!entry)
		return -ENOMEM;
	if (dma_pte_superpage(&new) && domain->iommu_superpage < MORSEL_LEVEL - 1)
		return -EOPNOTSUPP;
	if (!domain->iommu_coherency)
		morsel_each_table(new, MORSEL_LEVEL, morsel_write_back_table);
	morsel_replace_entry(domain, entry, value);
	return 0;
}

static void morsel_clear_entries(struct dmar_domain *domain, unsigned long iova,
				 unsigned long slots)
{
	for (; slots; slots--, iova += PUD_SIZE) {
		struct dma_pte *entry = morsel_find_entry(domain, iova);

		dma_clear_pte(entry);
		morsel_write_back(domain, entry, sizeof(*entry));
	}
	cache_tag_flush_all(domain);
}

/**
 * intel_iommu_attach_morsel - attach a morsel to a domain
 * @domain: any domain
 * @iova: where, a multiple of 1 GiB
 * @file: the held morsel
 * @slots: number of its GiB
 *
 * Context: may sleep; nothing maps the range or a range that contains it, until it is
 * detached.
 * Return: 0, -EOPNOTSUPP if the tables have another format, -ENOMEM.
 */
int intel_iommu_attach_morsel(struct iommu_domain *domain, unsigned long iova,
			      struct file *file, unsigned long slots)
{
	struct dmar_domain *dmar = to_dmar_domain(domain);
	unsigned long slot;
	int err = 0;

	if (domain->ops != intel_iommu_ops.default_domain_ops || !dmar->use_first_level)
		return -EOPNOTSUPP;
	for (slot = 0; !err && slot < slots; slot++)
		err = morsel_set_entry(dmar, iova + slot * PUD_SIZE,
				       morsel_held_entry(file, slot));
	if (err && slot > 1)
		morsel_clear_entries(dmar, iova, slot - 1);
	else if (!err)
		cache_tag_flush_range_np(dmar, iova, iova + slots * PUD_SIZE - 1);
	return err;
}
EXPORT_SYMBOL_GPL(intel_iommu_attach_morsel);

/**
 * intel_iommu_detach_morsel - detach a morsel from a domain
 * @domain: the domain
 * @iova: where it is attached
 * @slots: number of its GiB
 *
 * Context: any. No device of the domain accesses the morsel after the return.
 */
void intel_iommu_detach_morsel(struct iommu_domain *domain, unsigned long iova,
			       unsigned long slots)
{
	morsel_clear_entries(to_dmar_domain(domain), iova, slots);
}
EXPORT_SYMBOL_GPL(intel_iommu_detach_morsel);
