/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Inputs and results of the estimator.
 *
 * Cost and benefit of a decision are nanoseconds of user-space time. A model is one
 * file: a function from an action and the costs of the machine to the cost and
 * benefit of the action, with test cases that it must approve and others that it must
 * refuse. Documentation/mm/econ.rst explains how to add one.
 *
 * Models contain arithmetic only: tools/testing/tollfree builds and tests them in
 * user space, mm/econ/econ_kunit.c in the kernel.
 */
#ifndef _MM_ECON_MODEL_H
#define _MM_ECON_MODEL_H

#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/types.h>

/* Pages of a region, the range of one huge page. */
#define ECON_REGION_PAGES	512

/*
 * Cost of what is never worth waiting for in a fault: one second, the cost of a huge
 * page where none is free in the talk that econ implements.
 */
#define ECON_NEVER_NS		1000000000ULL

/* Kind of a decision. */
enum econ_kind {
	/* a huge page on the first touch of a region */
	ECON_HUGE,
	/* a block of 16 KiB to 1 MiB on the first touch of a page */
	ECON_LARGE,
	/* direct compaction and reclaim for either */
	ECON_DIRECT,
	/* a huge page for a region that has 4 KiB pages */
	ECON_PROMOTE,
	/* 4 KiB pages for a region that has a huge page */
	ECON_DEMOTE,
	/* compaction of a block in the background */
	ECON_COMPACT,
	/* zeroing a block ahead */
	ECON_ZERO,
	/* another size for the pools of LUF */
	ECON_POOL,
	/* a block of 16 KiB to 1 MiB read from swap */
	ECON_SWAP_IN,
	ECON_KINDS,
};

/* Costs of this machine, in nanoseconds; their names are in sysfs.c. */
enum econ_cost {
	/* the first touch of a page, its allocation and clearing included */
	ECON_FAULT,
	/* the first touch of a huge page, without its clearing */
	ECON_HUGE_FAULT,
	/* allocating and clearing a page */
	ECON_CLEAR_PAGE,
	ECON_CLEAR_HUGE,
	/* compaction until there is a block, whatever is in its way */
	ECON_COMPACT_BLOCK,
	/* moving one of the pages that are known to be in the way of a block */
	ECON_MOVE_PAGE,
	/* copying the pages of a region into a huge page and mapping it */
	ECON_COLLAPSE,
	ECON_SPLIT,
	/* reclaiming one page of a batch */
	ECON_RECLAIM_PAGE,
	/* interrupting one CPU for a TLB flush */
	ECON_FLUSH,
	/* waiting for a refault to read a page */
	ECON_READ_AGAIN,
	ECON_COSTS,
};

/* Source of a huge page. */
enum econ_supply {
	ECON_NO_BLOCK,
	ECON_FREE_BLOCK,
	ECON_ZEROED_BLOCK,
	/* none, but a number of pages to move for one is known */
	ECON_MADE_BLOCK,
};

struct econ_costs {
	u64 ns[ECON_COSTS];
};

/**
 * struct econ_action - inputs of a decision
 * @kind: kind of the decision
 * @order: order of the block of pages
 * @walks_ns: cost of page walks in the region with 4 KiB pages for the rest of the run
 * @touched: number of pages of the region that the program touches
 * @empty: number of pages of the huge page that contain only zeros
 * @page_ns: cost of a page of memory
 * @supply: source of a huge page
 * @block_ns: benefit that the block would have in another region
 * @in_way: number of pages to move for a block; 0 if it is not known
 * @refused_ns: benefit that was lost for lack of a block, less the cost of blocks
 *	that were compacted for it
 * @credit_ns: time that background work may use for processes that want it
 * @wanted: number of zeroed blocks that faults wanted recently
 * @stock: number of zeroed blocks
 * @is_idle: whether a CPU is idle otherwise
 * @interrupted: CPUs that flushes of pools interrupted since the pools were resized
 * @refaults: refaults since then that are due to the pools
 * @is_smaller: whether to halve the pools, else to double them
 */
struct econ_action {
	enum econ_kind kind;
	unsigned int order;
	u64 walks_ns;
	unsigned int touched;
	unsigned int empty;
	u64 page_ns;
	enum econ_supply supply;
	u64 block_ns;
	unsigned int in_way;
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
 * struct econ_case - test case of a model
 * @what: description
 * @action: inputs
 * @go: expected decision
 */
struct econ_case {
	const char *what;
	struct econ_action action;
	bool go;
};

/**
 * struct econ_model - model of one kind of decision
 * @name: name in counters, traces and files
 * @estimate: function from an action to its cost and benefit
 * @cases: test cases, with econ_default_costs
 * @nr_cases: number of cases
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

/* Users may set costs to any value: sums and products saturate. */

/**
 * econ_sum - saturating sum
 * @one: a number
 * @other: another number
 *
 * Context: any.
 * Return: the sum, at most U64_MAX.
 */
static inline u64 econ_sum(u64 one, u64 other)
{
	return one > U64_MAX - other ? U64_MAX : one + other;
}

/**
 * econ_product - saturating product
 * @cost: a cost
 * @number: number of times it is paid
 *
 * Context: any.
 * Return: the product, at most U64_MAX.
 */
static inline u64 econ_product(u64 cost, u64 number)
{
	return number && cost > U64_MAX / number ? U64_MAX : cost * number;
}

/* Weight of a program: a percentage of what it adds to a ledger and to credits. */
#define ECON_MOST_WEIGHT	100

/**
 * econ_weighed - part of a number that a weight gives
 * @number: the number
 * @weight: the weight, at most ECON_MOST_WEIGHT
 *
 * Context: any.
 * Return: the part, rounded down.
 */
static inline u64 econ_weighed(u64 number, unsigned int weight)
{
	return mul_u64_u64_div_u64(number, weight, ECON_MOST_WEIGHT);
}

/**
 * econ_pays - whether an action pays: it saves more than it costs
 * @estimate: its cost and benefit
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool econ_pays(struct econ_estimate estimate)
{
	return estimate.benefit > estimate.cost;
}

/**
 * econ_spare_ns - cost of the pages of a block that the program does not touch
 * @action: the action
 * @pages: number of pages of the block
 * @touched: number of them that the program touches
 *
 * Context: any.
 * Return: nanoseconds, 0 unless memory is short.
 */
static inline u64 econ_spare_ns(const struct econ_action *action, unsigned int pages,
				unsigned int touched)
{
	return econ_product(action->page_ns, pages > touched ? pages - touched : 0);
}

/* A block costs as much as this number of pages, even if fewer are moved. */
#define ECON_LEAST_IN_WAY	16

/**
 * econ_paid_pages - number of pages that a block costs
 * @in_way: number of its pages in use
 *
 * Context: any.
 * Return: the number; never 0.
 */
static inline unsigned int econ_paid_pages(unsigned int in_way)
{
	return in_way < ECON_LEAST_IN_WAY ? ECON_LEAST_IN_WAY : in_way;
}

/**
 * econ_block_ns - cost of making a block
 * @costs: costs of this machine
 * @in_way: number of pages to move; 0 if it is not known
 *
 * Context: any.
 * Return: nanoseconds.
 */
static inline u64 econ_block_ns(const struct econ_costs *costs, unsigned int in_way)
{
	if (!in_way)
		return costs->ns[ECON_COMPACT_BLOCK];
	return econ_product(costs->ns[ECON_MOVE_PAGE], econ_paid_pages(in_way));
}

struct econ_estimate econ_estimate(const struct econ_action *action,
				   const struct econ_costs *costs);
bool econ_may_explore(const struct econ_action *action, struct econ_estimate it);

#endif /* _MM_ECON_MODEL_H */
