/* SPDX-License-Identifier: GPL-2.0-only */
/* Declarations shared by the files of mm/econ. */
#ifndef _MM_ECON_INTERNAL_H
#define _MM_ECON_INTERNAL_H

#include <linux/atomic.h>
#include <linux/econ.h>
#include <linux/maple_tree.h>
#include <linux/mm.h>
#include <linux/refcount.h>
#include <linux/workqueue.h>

#include "../tollfree/histogram.h"
#include "hooks.h"
#include "model.h"
#include "profile.h"
#include "samples.h"
#include "waiting.h"

/* Length classes and protections of mappings, which have ordinals. */
#define ECON_CLASSES		57
#define ECON_PROTECTIONS	8

/* Effect of decisions. */
enum econ_mode {
	/* no decision is made; everything is as without econ */
	ECON_OFF,
	/* decisions are counted; everything is as without econ */
	ECON_OBSERVE,
	ECON_ON,
	/* for a process: the mode of the machine */
	ECON_AS_MACHINE,
	ECON_MODES,
};

/* Background work for a process, paid with CPU time that it used. */
enum econ_work {
	ECON_WORK_COMPACT,
	ECON_WORK_ZERO,
	ECON_WORKS,
};

/* Answer of a BPF program that is asked for a decision. */
enum econ_verdict {
	ECON_REFUSE,
	ECON_APPROVE,
	/* the kernel's model decides */
	ECON_AS_ESTIMATED,
};

/**
 * struct econ_ops - model of decisions in a BPF program
 * @decide: returns an enum econ_verdict for an action, and its cost and benefit in
 *	nanoseconds by the kernel's model; any other number is ECON_AS_ESTIMATED. Called under
 *	RCU, also in page faults and with interrupts disabled; must not sleep
 *
 * The members of struct econ_action and the order of the kinds are no ABI.
 */
struct econ_ops {
	int (*decide)(const struct econ_action *action, u64 cost, u64 benefit);
};

/* Kind of a fault, for latency histograms. */
enum econ_fault_kind {
	ECON_FAULT_BASE,
	/* a 4 KiB page, because there was no block */
	ECON_FAULT_FELL_BACK,
	ECON_FAULT_FELL_BACK_COMPACTED,
	ECON_FAULT_FELL_BACK_RECLAIMED,
	ECON_FAULT_LARGE,
	ECON_FAULT_HUGE_CLEARED,
	ECON_FAULT_HUGE_ZEROED,
	ECON_FAULT_HUGE_COMPACTED,
	ECON_FAULT_HUGE_RECLAIMED,
	ECON_FAULT_ZERO_PAGE,
	ECON_FAULT_PROTECTION,
	ECON_FAULT_SWAP,
	ECON_FAULT_FILE,
	ECON_FAULT_OTHER,
	ECON_FAULT_KINDS,
};

/* Events of blocks that are zeroed ahead. */
enum econ_zeroed_count {
	/* zeroed and kept */
	ECON_ZEROED_MADE,
	/* not needed any more while they were zeroed */
	ECON_ZEROED_ABANDONED,
	/* taken by a fault */
	ECON_ZEROED_TAKEN,
	/* put back by a fault, because its memory cgroup was full */
	ECON_ZEROED_PUT_BACK,
	/* freed to the allocator */
	ECON_ZEROED_GIVEN_BACK,
	/* faults that could use one when there was none */
	ECON_ZEROED_MISSED,
	/* faults that could use one, and left it to cgroups of a higher weight */
	ECON_ZEROED_LEFT,
	/* in mode observe */
	ECON_ZEROED_WOULD_MAKE,
	ECON_ZEROED_WOULD_HIT,
	ECON_ZEROED_WOULD_SAVE_NS,
	ECON_ZEROED_COUNTS,
};

/**
 * struct econ_holder - a profile with a reference count
 * @users: number of processes and mms that refer to it
 * @rcu: for freeing it from any context
 * @profile: the profile
 * @rows: rows of @profile
 */
struct econ_holder {
	refcount_t users;
	struct rcu_head rcu;
	struct econ_profile profile;
	struct econ_row rows[];
};

/**
 * struct econ_account - decisions of one kind
 * @asked: number of decisions
 * @approved: number of approved ones
 * @cost: expected cost of approved ones, in nanoseconds
 * @benefit: expected benefit of approved ones
 * @refused: expected benefit of refused ones
 */
struct econ_account {
	atomic64_t asked;
	atomic64_t approved;
	atomic64_t cost;
	atomic64_t benefit;
	atomic64_t refused;
};

/**
 * struct econ_row_state - what became of a row
 * @small: number of regions that were not made huge
 * @huge: number of regions that were
 * @observed: number of huge regions that were observed
 * @used: number of those that were accessed meanwhile
 * @is_busy: a task uses the members below
 * @is_cleared: the accessed bit of @witness was cleared
 * @witness: region that is observed, or 0
 * @since_ns: CPU time of the program when @witness was looked at last
 */
struct econ_row_state {
	atomic_t small;
	atomic_t huge;
	u32 observed;
	u32 used;
	atomic_t is_busy;
	bool is_cleared;
	unsigned long witness;
	u64 since_ns;
};

/**
 * struct econ_mm - profile of an address space
 * @holder: the profile
 * @ranges: row of each address that has one, except in the heap and the bss
 * @mappings: mappings that have rows: their range and index of their first row
 * @is_counted: whether @ordinals counts all mappings since the start
 * @mode: effect of its decisions
 * @ran_ns: CPU time of the process
 * @summed_ns: when @ran_ns was updated last
 * @begin_ns: CPU time of the process when the program started. Less than 0 (as a signed
 *	number) for a child of fork: it continues the program of its parent
 * @earned_ns: for each kind of work, the CPU time of the process that was added to
 *	its credit
 * @ordinals: number of mappings of each class and protection
 * @waiting: regions that were not touched yet
 * @ledger: decisions, by kind
 * @free: for freeing it after a grace period
 * @rows: state of each row
 */
struct econ_mm {
	struct econ_holder *holder;
	struct maple_tree ranges;
	struct maple_tree mappings;
	bool is_counted;
	enum econ_mode mode;
	u64 ran_ns;
	u64 summed_ns;
	u64 begin_ns;
	u64 earned_ns[ECON_WORKS];
	u32 ordinals[ECON_CLASSES][ECON_PROTECTIONS];
	struct econ_waiting *waiting;
	struct econ_account ledger[ECON_KINDS];
	struct rcu_work free;
	struct econ_row_state rows[];
};

extern enum econ_mode econ_mode;
extern struct econ_costs econ_costs;
extern struct econ_account econ_ledger[ECON_KINDS];
extern atomic64_t econ_explored[ECON_KINDS];
extern const char *const econ_mode_names[ECON_MODES];
extern const char *const econ_cost_names[ECON_COSTS];

/* account.c */

/**
 * econ_effective_mode - effect of the decisions of a program
 * @econ: profile of its mm
 *
 * Context: any.
 * Return: ECON_OFF, ECON_OBSERVE or ECON_ON.
 */
static inline enum econ_mode econ_effective_mode(const struct econ_mm *econ)
{
	enum econ_mode mode = READ_ONCE(econ->mode);

	return mode == ECON_AS_MACHINE ? READ_ONCE(econ_mode) : mode;
}

unsigned long econ_free_blocks(int nid);
bool econ_has_piece(int nid, unsigned int order);
bool econ_is_node_short(int nid);
u64 econ_page_ns(const struct mm_struct *mm, int nid);
void econ_count_ns(atomic64_t *sum, u64 ns);
void econ_book(unsigned int kind, unsigned int order, unsigned long address,
	       struct econ_account *own, struct econ_estimate it, bool go, bool acts);
bool econ_explore(const struct econ_action *action, unsigned long address,
		  struct econ_estimate it, bool acts);
bool econ_judge(const struct econ_action *action, struct econ_estimate it,
		bool *may_explore);
bool econ_decide(const struct econ_action *action, unsigned long address,
		 struct econ_account *own, bool acts);
bool econ_decide_for_mm(struct econ_mm *econ, const struct econ_action *action,
			unsigned long address);

/* bpf.c */

#ifdef CONFIG_ECON_BPF
/* Decisions of BPF programs: refused, and approved. */
extern atomic64_t econ_by_program[2];

enum econ_verdict econ_ask_program(const struct econ_action *action,
				   struct econ_estimate it);
#else
static inline enum econ_verdict econ_ask_program(const struct econ_action *action,
						 struct econ_estimate it)
{
	return ECON_AS_ESTIMATED;
}
#endif

/* fault.c */

extern bool econ_decide_all_stalls;
extern bool econ_make_in_faults;

/* measure.c */

#define ECON_ALL_COSTS	(BIT(ECON_COSTS) - 1)

/* A bit for each cost that is not measured. */
extern unsigned long econ_frozen_costs;
extern bool econ_faults_counted;
extern struct econ_samples econ_samples[ECON_COSTS];
extern atomic_long_t econ_fault_times[ECON_FAULT_KINDS]
				     [TOLLFREE_HISTOGRAM_BUCKETS];

/**
 * econ_is_frozen - whether a cost is not measured
 * @which: the cost
 *
 * Context: any.
 * Return: true if so.
 */
static inline bool econ_is_frozen(enum econ_cost which)
{
	return READ_ONCE(econ_frozen_costs) & BIT(which);
}

void econ_sample(enum econ_cost which, u64 ns);
void econ_forget_samples(void);
void econ_count_faults(void);

/* process.c */

/**
 * econ_mm_locked - profile of an mm
 * @mm: the mm
 *
 * Context: the mmap lock of @mm is held for writing.
 * Return: the profile, or NULL if it has none.
 */
static inline struct econ_mm *econ_mm_locked(struct mm_struct *mm)
{
	return rcu_dereference_protected(mm->econ,
					 lockdep_is_held(&mm->mmap_lock));
}

struct econ_holder *econ_new_profile(const char *text, size_t length,
				     struct econ_parse_error *error);
void econ_put_profile(struct econ_holder *holder);
struct econ_holder *econ_get_profile(struct signal_struct *signal);
int econ_set_profile(struct task_struct *task, struct mm_struct *mm,
		     struct econ_holder *holder);
int econ_set_mode(struct mm_struct *mm, enum econ_mode mode);
u64 econ_age(struct econ_mm *econ, const struct mm_struct *mm);
u64 econ_earned(struct econ_mm *econ, const struct mm_struct *mm,
		enum econ_work work);

/* place.c */

/**
 * struct econ_place - profile of the region that a decision is about
 * @region: sum of the rows in the region
 * @row: row with most bytes in it, NULL if there is none
 * @most: number of these bytes
 * @begin: address of the first byte of @row
 * @age_ns: CPU time of the program up to now
 */
struct econ_place {
	struct econ_region region;
	const struct econ_row *row;
	u64 most;
	unsigned long begin;
	u64 age_ns;
};

/**
 * econ_user_decided - whether there is nothing to decide about a mapping
 * @vma: the mapping
 *
 * Context: any.
 * Return: true if it is not anonymous, or the user requested huge pages for it.
 */
static inline bool econ_user_decided(struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_HUGEPAGE || !vma_is_anonymous(vma);
}

struct econ_mm *econ_begin_decision(const struct vm_area_struct *vma,
				    unsigned long region, struct econ_place *place);
bool econ_end_decision(const struct econ_mm *econ, bool go);
void econ_describe_place(const struct econ_mm *econ, const struct econ_place *place,
			 struct econ_action *action);
u64 econ_block_value(const struct econ_mm *econ, const struct econ_place *place,
		     unsigned long blocks);
void econ_find_supply(const struct econ_mm *econ, const struct econ_place *place,
		      int nid, unsigned long zeroed, struct econ_action *action);

/* use.c */

/**
 * econ_row_state - state of a row
 * @econ: profile of an mm
 * @row: a row of it
 *
 * Context: any; the profile stays.
 * Return: the state.
 */
static inline struct econ_row_state *econ_row_state(const struct econ_mm *econ,
						    const struct econ_row *row)
{
	return (struct econ_row_state *)&econ->rows[row - econ->holder->rows];
}

extern bool econ_observe_use;
/* Observed regions: not used, and used. */
extern atomic_long_t econ_observed[2];

void econ_test_use(struct econ_mm *econ, struct vm_area_struct *vma,
		   const struct econ_place *place);
void econ_begin_use(struct econ_mm *econ, const struct econ_place *place,
		    unsigned long region);

/* block.c */
#define ECON_BLOCKS	16

/**
 * struct econ_block - block that can be made free
 * @begin: its first page frame
 * @in_way: number of its pages that are in use
 * @is_isolated: it is isolated while its pages are moved
 */
struct econ_block {
	unsigned long begin;
	unsigned int in_way;
	bool is_isolated;
};

bool econ_has_room(struct zone *zone);
unsigned int econ_choose_in_node(int nid, struct econ_block *blocks);
unsigned int econ_choose_blocks(struct zone *zone, struct econ_block *blocks);
bool econ_recall_block(struct econ_block *block);
unsigned int econ_make_blocks(struct zone *zone, struct econ_block *blocks,
			      unsigned int count);

/* ledger.c */

void econ_want_block(int nid, struct econ_mm *econ, const struct mm_struct *mm,
		     const struct econ_action *action);
void econ_forget_ledgers(void);
int econ_show_ledgers(char *buf);

/* pools.c */

extern atomic_long_t econ_refault_pages;

void econ_observe_pools(bool on);
void econ_leave_pools(void);

/* prezero_stock.c */

/* Per node. */
extern unsigned long econ_zeroed_limit;
extern atomic64_t econ_zeroed_counts[ECON_ZEROED_COUNTS];
extern const char *const econ_zeroed_names[ECON_ZEROED_COUNTS];

void econ_prezero_suppose_taken(int nid);
struct folio *econ_prezero_take_block(int nid, unsigned int weight);

/* prezero_demand.c */

unsigned long econ_prezero_want(int nid, u64 earned_ns, unsigned int weight);
u64 econ_prezero_credit(void);

/* prezero.c */

void econ_prezero_adjust_all(void);

/* node.c */

int econ_node_of(struct vm_area_struct *vma, unsigned long address);

/* weight.c */

#ifdef CONFIG_MEMCG
unsigned int econ_weight(const struct mm_struct *mm);
#else
static inline unsigned int econ_weight(const struct mm_struct *mm)
{
	return ECON_MOST_WEIGHT;
}
#endif

/* sysfs.c */

int econ_parse_mode(const char *text, enum econ_mode modes);

#endif /* _MM_ECON_INTERNAL_H */
