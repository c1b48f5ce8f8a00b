// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connects LUF, which has pools, with econ, which decides their size. Neither includes
 * the other.
 */

#include <linux/build_bug.h>
#include <linux/init.h>
#include <linux/stddef.h>

#include "../econ/hooks.h"
#include "../luf/hooks.h"

static_assert(sizeof(struct econ_watch) <= sizeof_field(struct luf_observation, state));

static struct econ_watch *tollfree_watch(struct luf_observation *it)
{
	return (struct econ_watch *)it->state;
}

static void tollfree_flush_begin(struct luf_observation *it)
{
	econ_watch_begin(tollfree_watch(it));
}

static void tollfree_flush_end(struct luf_observation *it, unsigned int cpus)
{
	econ_pool_flushed(tollfree_watch(it), cpus);
}

static const struct luf_observer tollfree_flush_observer = {
	.begin = tollfree_flush_begin,
	.end = tollfree_flush_end,
};

static void tollfree_observe_pools(bool on)
{
	luf_observe(on ? &tollfree_flush_observer : NULL);
}

static const struct econ_pools tollfree_pools = {
	.node_cap = luf_node_cap,
	.scale = luf_scale_pools,
	.observe = tollfree_observe_pools,
};

/* Before econ is switched on by a late initcall. */
static int __init tollfree_pools_init(void)
{
	econ_set_pools(&tollfree_pools);
	return 0;
}
subsys_initcall(tollfree_pools_init);
