// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory node from which a fault will get a huge page. Supply, blocks that are
 * zeroed ahead and losses are those of this node, wherever the task runs.
 *
 * This follows alloc_pages_mpol() for a huge page of an anonymous mapping: a policy
 * that allows its preferred node gets the page from there or not at all, unless it
 * reclaims; any other policy tries the nodes in order.
 */

#include <linux/cpuset.h>
#include <linux/gfp.h>
#include <linux/mempolicy.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/nodemask.h>
#include <linux/topology.h>

#include "internal.h"

#ifdef CONFIG_NUMA
/* Return: the nearest of @nodes with a free block; without one, the nearest. */
static int econ_nearest(int nid, nodemask_t *nodes)
{
	int nearest = NUMA_NO_NODE;
	struct zoneref *z;
	struct zone *zone;

	for_each_zone_zonelist_nodemask(zone, z,
					node_zonelist(nid, GFP_TRANSHUGE_LIGHT),
					gfp_zone(GFP_TRANSHUGE_LIGHT), nodes) {
		int at = zone_to_nid(zone);

		if (!node_isset(at, cpuset_current_mems_allowed))
			continue;
		if (nearest == NUMA_NO_NODE)
			nearest = at;
		if (econ_free_blocks(at))
			return at;
	}
	return nearest;
}

/* Interleaving: the offset in the mapping determines the node of a block. */
static int econ_interleaved(nodemask_t *nodes, pgoff_t index)
{
	unsigned int skip;
	int nid;

	if (nodes_empty(*nodes))
		return NUMA_NO_NODE;
	skip = index % nodes_weight(*nodes);
	for_each_node_mask(nid, *nodes)
		if (!skip--)
			break;
	return econ_nearest(nid, NULL);
}

static int econ_node_by(struct mempolicy *policy, pgoff_t index)
{
	/* A cpuset may change the nodes. */
	nodemask_t nodes = policy->nodes;
	int nid = numa_node_id();

	switch (policy->mode) {
	case MPOL_INTERLEAVE:
		return econ_interleaved(&nodes, index);
	case MPOL_WEIGHTED_INTERLEAVE:
		/* The weights are private to mm/mempolicy.c. */
		return NUMA_NO_NODE;
	case MPOL_PREFERRED:
		nid = first_node(nodes);
		break;
	case MPOL_BIND:
	case MPOL_PREFERRED_MANY:
		if (policy->home_node != NUMA_NO_NODE)
			nid = policy->home_node;
		if (!node_isset(nid, nodes))
			return econ_nearest(nid, &nodes);
	}
	return node_isset(nid, cpuset_current_mems_allowed) ? nid :
							      NUMA_NO_NODE;
}

/**
 * econ_node_of - predict the node of the huge page of a region
 * @vma: the mapping
 * @address: the region
 *
 * Context: as for get_vma_policy(): a lock of the mm or of @vma is held.
 * Return: the node, or NUMA_NO_NODE if it is not predictable.
 */
int econ_node_of(struct vm_area_struct *vma, unsigned long address)
{
	pgoff_t index;
	struct mempolicy *policy = get_vma_policy(vma, address, HPAGE_PMD_ORDER,
						  &index);
	int nid = econ_node_by(policy, index);

	mpol_cond_put(policy);
	return nid;
}
#else
int econ_node_of(struct vm_area_struct *vma, unsigned long address)
{
	return numa_node_id();
}
#endif
