/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the estimator knows when it is asked, and what it answers.
 *
 * Both sides of a decision are nanoseconds of user-space time. A model is one
 * file: a function from an action and the machine's costs to what the action
 * costs and what it saves, with the cases in which it has to say yes and those in
 * which it has to say no. Documentation/mm/econ.rst walks through adding one.
 *
 * Models are arithmetic alone: tools/testing/tollfree builds and tests them in
 * user space, mm/econ/econ_kunit.c in the kernel.
 */
#ifndef _MM_ECON_MODEL_H
#define _MM_ECON_MODEL_H

#include <linux/limits.h>
#include <linux/types.h>

/* Pages of a region, which is what one huge page maps. */
#define ECON_REGION_PAGES	512

/*
 * What is never worth waiting for in a fault: a second, the talk's own cost of a
 * huge page where none is free.
 */
#define ECON_NEVER_NS		1000000000ULL

/* What is decided. */
enum econ_kind {
	/* a huge page when a region is touched for the first time */
	ECON_HUGE,
	/* a block of 16 KiB to 1 MiB then */
	ECON_LARGE,
	/* direct compaction and reclaim for either */
	ECON_DIRECT,
	/* a huge page for a region that has small ones */
	ECON_PROMOTE,
	/* small pages for a region that has a huge one */
	ECON_DEMOTE,
	/* putting a block together in the background */
	ECON_COMPACT,
	/* zeroing a block ahead */
	ECON_ZERO,
	/* pools of another size for pages that wait for a flush */
	ECON_POOL,
	/* a block of 16 KiB to 1 MiB that is read from swap */
	ECON_SWAP_IN,
	ECON_KINDS,
};

/* What this machine pays for, in nanoseconds; costs.c has their names. */
enum econ_cost {
	/* the first touch of a page, its allocation and clearing included */
	ECON_FAULT,
	/* that of a huge page without its clearing */
	ECON_HUGE_FAULT,
	/* a page, taken and cleared */
	ECON_CLEAR_PAGE,
	ECON_CLEAR_HUGE,
	/* moving what is in the way of a block */
	ECON_COMPACT_BLOCK,
	/* copying a region's pages together, and mapping them anew */
	ECON_COLLAPSE,
	ECON_SPLIT,
	/* a page of many that are reclaimed together */
	ECON_RECLAIM_PAGE,
	/* interrupting one CPU so that it flushes */
	ECON_FLUSH,
	/* waiting for a page that was reclaimed and is read again */
	ECON_READ_AGAIN,
	ECON_COSTS,
};

/* Where a huge page would come from. */
enum econ_supply {
	ECON_NO_BLOCK,
	ECON_FREE_BLOCK,
	ECON_ZEROED_BLOCK,
};

struct econ_costs {
	u64 ns[ECON_COSTS];
};

/**
 * struct econ_action - what might be done
 * @kind: what
 * @order: of the block of pages
 * @walks_ns: what page walks would cost in the region for as long as the program
 *	still runs, if its pages are small
 * @touched: how many pages of the region the program touches
 * @empty: how many pages of the huge page hold nothing but zeros
 * @supply: where a huge page would come from
 * @block_ns: what another region would save by the block that this one takes
 * @refused_ns: what was lost because there was no block, less what blocks have
 *	cost that were put together for that
 * @credit_ns: what may be spent in the background for those that wanted it
 * @wanted: zeroed blocks that faults asked for of late
 * @stock: zeroed blocks that there are
 * @is_idle: whether a CPU has nothing else to do
 * @interrupted: CPUs that flushes of pools interrupted since pools were as large
 *	as they are
 * @refaults: pages that were read again since then, and would not have been
 *	without pools
 * @is_smaller: whether pools are to be half as large, else twice
 */
struct econ_action {
	enum econ_kind kind;
	unsigned int order;
	u64 walks_ns;
	unsigned int touched;
	unsigned int empty;
	enum econ_supply supply;
	u64 block_ns;
	u64 refused_ns;
	u64 credit_ns;
	unsigned int wanted;
	unsigned int stock;
	bool is_idle;
	unsigned int interrupted;
	unsigned int refaults;
	bool is_smaller;
};

struct econ_estimate {
	u64 cost;
	u64 benefit;
};

/**
 * struct econ_case - what a model has to say
 * @what: in words
 * @action: when asked about this
 * @go: this
 */
struct econ_case {
	const char *what;
	struct econ_action action;
	bool go;
};

/**
 * struct econ_model - one estimator
 * @name: in counters, traces and files
 * @estimate: what an action costs and saves
 * @cases: tests of it, by econ_default_costs
 * @nr_cases: how many
 */
struct econ_model {
	const char *name;
	struct econ_estimate (*estimate)(const struct econ_action *action,
					 const struct econ_costs *costs);
	const struct econ_case *cases;
	unsigned int nr_cases;
};

extern const struct econ_model econ_huge_model;
extern const struct econ_model econ_large_model;
extern const struct econ_model econ_direct_model;
extern const struct econ_model econ_promote_model;
extern const struct econ_model econ_demote_model;
extern const struct econ_model econ_compact_model;
extern const struct econ_model econ_zero_model;
extern const struct econ_model econ_pool_model;
extern const struct econ_model econ_swap_model;

extern const struct econ_model *const econ_models[ECON_KINDS];
extern const struct econ_costs econ_default_costs;

/* Prices may be anything that somebody has written: sums stay at the largest. */

static inline u64 econ_sum(u64 one, u64 other)
{
	return one > U64_MAX - other ? U64_MAX : one + other;
}

static inline u64 econ_product(u64 cost, u64 number)
{
	return number && cost > U64_MAX / number ? U64_MAX : cost * number;
}

/* An action is worth while if it saves more than it costs. */
static inline bool econ_pays(struct econ_estimate estimate)
{
	return estimate.benefit > estimate.cost;
}

struct econ_estimate econ_estimate(const struct econ_action *action,
				   const struct econ_costs *costs);

#endif /* _MM_ECON_MODEL_H */
