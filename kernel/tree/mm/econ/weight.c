// SPDX-License-Identifier: GPL-2.0-only
/*
 * Weights of memory cgroups: how much of the work that all programs of the machine share
 * is done for the programs of a cgroup.
 *
 * Blocks that are made or zeroed in the background are paid from what programs lost and
 * from their CPU time, and used by the program that faults next. A weight scales what a
 * program adds, and leaves a part of the zeroed blocks to programs of higher weight.
 */

#include <linux/cgroup.h>
#include <linux/init.h>
#include <linux/memcontrol.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>

#include "internal.h"

/* struct mem_cgroup has what it lacks: a new cgroup has the largest weight. */
static unsigned int econ_own_weight(const struct mem_cgroup *memcg)
{
	return ECON_MOST_WEIGHT - READ_ONCE(memcg->econ_withheld);
}

/**
 * econ_weight - weight of a program
 * @mm: the mm
 *
 * Context: RCU is locked.
 * Return: the smallest weight of its memory cgroup and of those above it, 0 to
 * ECON_MOST_WEIGHT.
 */
unsigned int econ_weight(const struct mm_struct *mm)
{
	struct mem_cgroup *memcg = mem_cgroup_from_task(rcu_dereference(mm->owner));
	unsigned int weight = ECON_MOST_WEIGHT;

	for (; memcg && !mem_cgroup_is_root(memcg); memcg = parent_mem_cgroup(memcg))
		weight = min(weight, econ_own_weight(memcg));
	return weight;
}

static u64 econ_weight_read(struct cgroup_subsys_state *css, struct cftype *file)
{
	return econ_own_weight(mem_cgroup_from_css(css));
}

static int econ_weight_write(struct cgroup_subsys_state *css, struct cftype *file,
			     u64 weight)
{
	if (weight > ECON_MOST_WEIGHT)
		return -ERANGE;
	WRITE_ONCE(mem_cgroup_from_css(css)->econ_withheld, ECON_MOST_WEIGHT - weight);
	return 0;
}

static struct cftype econ_weight_files[] = {
	{
		.name = "econ.weight",
		.flags = CFTYPE_NOT_ON_ROOT,
		.read_u64 = econ_weight_read,
		.write_u64 = econ_weight_write,
	},
	{}
};

static int __init econ_weight_init(void)
{
	return cgroup_add_dfl_cftypes(&memory_cgrp_subsys, econ_weight_files);
}
subsys_initcall(econ_weight_init);
