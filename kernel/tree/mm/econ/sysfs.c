// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/mm/econ: mode, costs and counters of decisions. See
 * Documentation/ABI/testing/sysfs-kernel-mm-econ.
 */

#define pr_fmt(fmt) "econ: " fmt

#include <linux/bitops.h>
#include <linux/gfp.h>
#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "internal.h"

#define ECON_ATTR_RO(_name)	__ATTR(_name, 0444, econ_##_name##_show, NULL)
#define ECON_ATTR_RW(_name)	\
	__ATTR(_name, 0644, econ_##_name##_show, econ_##_name##_store)

static DEFINE_MUTEX(switching);

/* The mode */

const char *const econ_mode_names[ECON_MODES] = {
	[ECON_OFF] = "off",
	[ECON_OBSERVE] = "observe",
	[ECON_ON] = "on",
	[ECON_AS_MACHINE] = "default",
};

/**
 * econ_parse_mode - parse the name of a mode
 * @text: the name, optionally with a newline
 * @modes: number of modes to accept
 *
 * Context: any.
 * Return: the mode, or -EINVAL.
 */
int econ_parse_mode(const char *text, enum econ_mode modes)
{
	return __sysfs_match_string(econ_mode_names, modes, text);
}

static enum econ_mode wanted;

static int __init econ_setup(char *text)
{
	int mode = econ_parse_mode(text, ECON_AS_MACHINE);

	if (mode < 0)
		return mode;
	wanted = mode;
	return 0;
}
early_param("econ", econ_setup);

static void econ_set_key(struct static_key_false *key, bool on)
{
	if (on)
		static_branch_enable(key);
	else
		static_branch_disable(key);
}

/* Set the static keys to match the mode and the measurements. */
static void econ_update_keys(void)
{
	bool on = econ_mode != ECON_OFF;

	if (econ_mode != ECON_ON)
		econ_leave_pools();
	econ_set_key(&econ_key, on);
	econ_observe_pools(on);
	econ_set_key(&econ_watch_key,
		     econ_faults_counted ||
		     (on && econ_frozen_costs != ECON_ALL_COSTS));
}

static ssize_t econ_mode_show(struct kobject *kobj, struct kobj_attribute *attr,
			      char *buf)
{
	return sysfs_emit(buf, "%s\n", econ_mode_names[READ_ONCE(econ_mode)]);
}

static ssize_t econ_mode_store(struct kobject *kobj, struct kobj_attribute *attr,
			       const char *buf, size_t count)
{
	int mode = econ_parse_mode(buf, ECON_AS_MACHINE);

	if (mode < 0)
		return mode;
	guard(mutex)(&switching);
	WRITE_ONCE(econ_mode, mode);
	econ_update_keys();
	econ_prezero_adjust_all();
	if (mode == ECON_OFF)
		econ_forget_ledgers();
	return count;
}

/* Store function of boolean switches. */
static ssize_t econ_switch_store(bool *what, const char *buf, size_t count)
{
	bool on;
	int err = kstrtobool(buf, &on);

	if (err)
		return err;
	guard(mutex)(&switching);
	WRITE_ONCE(*what, on);
	econ_update_keys();
	return count;
}

static ssize_t econ_decide_all_stalls_show(struct kobject *kobj,
					   struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(econ_decide_all_stalls));
}

static ssize_t econ_decide_all_stalls_store(struct kobject *kobj,
					    struct kobj_attribute *attr,
					    const char *buf, size_t count)
{
	return econ_switch_store(&econ_decide_all_stalls, buf, count);
}

static ssize_t econ_make_in_faults_show(struct kobject *kobj, struct kobj_attribute *attr,
					char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(econ_make_in_faults));
}

static ssize_t econ_make_in_faults_store(struct kobject *kobj, struct kobj_attribute *attr,
					 const char *buf, size_t count)
{
	return econ_switch_store(&econ_make_in_faults, buf, count);
}

static ssize_t econ_observe_use_show(struct kobject *kobj, struct kobj_attribute *attr,
				     char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(econ_observe_use));
}

static ssize_t econ_observe_use_store(struct kobject *kobj, struct kobj_attribute *attr,
				      const char *buf, size_t count)
{
	return econ_switch_store(&econ_observe_use, buf, count);
}

static struct kobj_attribute mode_attr = ECON_ATTR_RW(mode);
static struct kobj_attribute stalls_attr = ECON_ATTR_RW(decide_all_stalls);
static struct kobj_attribute make_attr = ECON_ATTR_RW(make_in_faults);
static struct kobj_attribute use_attr = ECON_ATTR_RW(observe_use);

static struct attribute *econ_attrs[] = {
	&mode_attr.attr,
	&stalls_attr.attr,
	&make_attr.attr,
	&use_attr.attr,
	NULL,
};

static const struct attribute_group econ_group = {
	.attrs = econ_attrs,
};

/* The costs, in nanoseconds */

const char *const econ_cost_names[ECON_COSTS] = {
	[ECON_FAULT] = "fault",
	[ECON_HUGE_FAULT] = "huge_fault",
	[ECON_CLEAR_PAGE] = "clear_page",
	[ECON_CLEAR_HUGE] = "clear_huge",
	[ECON_COMPACT_BLOCK] = "compact_block",
	[ECON_MOVE_PAGE] = "move_page",
	[ECON_FLUSH] = "flush",
	[ECON_READ_AGAIN] = "read_again",
	[ECON_COLLAPSE] = "collapse",
	[ECON_SPLIT] = "split",
	[ECON_RECLAIM_PAGE] = "reclaim_page",
};

static struct kobj_attribute cost_attrs[ECON_COSTS];
static struct attribute *costs_group_attrs[ECON_COSTS + 3];

static ssize_t econ_cost_show(struct kobject *kobj, struct kobj_attribute *attr,
			      char *buf)
{
	return sysfs_emit(buf, "%llu\n",
			  READ_ONCE(econ_costs.ns[attr - cost_attrs]));
}

static ssize_t econ_cost_store(struct kobject *kobj, struct kobj_attribute *attr,
			       const char *buf, size_t count)
{
	u64 ns;
	int err = kstrtou64(buf, 0, &ns);

	if (err)
		return err;
	WRITE_ONCE(econ_costs.ns[attr - cost_attrs], ns);
	return count;
}

static ssize_t econ_frozen_show(struct kobject *kobj, struct kobj_attribute *attr,
				char *buf)
{
	unsigned long frozen = READ_ONCE(econ_frozen_costs);
	int length = 0;
	unsigned int i;

	if (!frozen || frozen == ECON_ALL_COSTS)
		return sysfs_emit(buf, "%d\n", frozen != 0);
	for_each_set_bit(i, &frozen, ECON_COSTS)
		length += sysfs_emit_at(buf, length, "%s%s", length ? " " : "",
					econ_cost_names[i]);
	return length + sysfs_emit_at(buf, length, "\n");
}

/* Return: a bit for each cost that a list names, or 0 if a name is not that of a cost. */
static unsigned long econ_parse_costs(char *names)
{
	unsigned long costs = 0;
	char *name;
	int cost;

	while ((name = strsep(&names, " "))) {
		cost = __sysfs_match_string(econ_cost_names, ECON_COSTS, name);
		if (cost < 0)
			return 0;
		costs |= BIT(cost);
	}
	return costs;
}

static ssize_t econ_frozen_store(struct kobject *kobj, struct kobj_attribute *attr,
				 const char *buf, size_t count)
{
	char *names __free(kfree) = kstrdup(buf, GFP_KERNEL);
	unsigned long costs = 0;

	if (!names)
		return -ENOMEM;
	if (sysfs_streq(buf, "1")) {
		costs = ECON_ALL_COSTS;
	} else if (!sysfs_streq(buf, "0")) {
		costs = econ_parse_costs(strim(names));
		if (!costs)
			return -EINVAL;
	}
	guard(mutex)(&switching);
	WRITE_ONCE(econ_frozen_costs, costs);
	econ_update_keys();
	return count;
}

/* For each cost: median, 90th percentile and number of its samples. */
static ssize_t econ_samples_show(struct kobject *kobj, struct kobj_attribute *attr,
				 char *buf)
{
	int length = 0, i;

	for (i = 0; i < ECON_COSTS; i++) {
		const u64 *buckets = econ_samples[i].buckets;

		length += sysfs_emit_at(buf, length, "%s %llu %llu %llu\n",
					econ_cost_names[i],
					tollfree_histogram_quantile(buckets, 5000),
					tollfree_histogram_quantile(buckets, 9000),
					econ_samples[i].seen);
	}
	return length;
}

/* Writing 0 resets the samples. */
static ssize_t econ_samples_store(struct kobject *kobj, struct kobj_attribute *attr,
				  const char *buf, size_t count)
{
	if (!sysfs_streq(buf, "0"))
		return -EINVAL;
	econ_forget_samples();
	return count;
}

static struct kobj_attribute frozen_attr = ECON_ATTR_RW(frozen);
static struct kobj_attribute samples_attr = ECON_ATTR_RW(samples);

static const struct attribute_group costs_group = {
	.name = "costs",
	.attrs = costs_group_attrs,
};

/* Latencies of faults: a file for each kind, with a line for each bucket. */

static const char *const fault_names[ECON_FAULT_KINDS] = {
	[ECON_FAULT_BASE] = "base",
	[ECON_FAULT_FELL_BACK] = "fell_back",
	[ECON_FAULT_FELL_BACK_COMPACTED] = "fell_back_compacted",
	[ECON_FAULT_FELL_BACK_RECLAIMED] = "fell_back_reclaimed",
	[ECON_FAULT_LARGE] = "large",
	[ECON_FAULT_HUGE_CLEARED] = "huge_cleared",
	[ECON_FAULT_HUGE_ZEROED] = "huge_zeroed",
	[ECON_FAULT_HUGE_COMPACTED] = "huge_compacted",
	[ECON_FAULT_HUGE_RECLAIMED] = "huge_reclaimed",
	[ECON_FAULT_ZERO_PAGE] = "zero_page",
	[ECON_FAULT_PROTECTION] = "protection",
	[ECON_FAULT_SWAP] = "swap",
	[ECON_FAULT_FILE] = "file",
	[ECON_FAULT_OTHER] = "other",
};

static struct kobj_attribute fault_attrs[ECON_FAULT_KINDS];
static struct attribute *latency_attrs[ECON_FAULT_KINDS + 2];

static ssize_t econ_fault_show(struct kobject *kobj, struct kobj_attribute *attr,
			       char *buf)
{
	const atomic_long_t *times = econ_fault_times[attr - fault_attrs];
	int length = 0, i;

	for (i = 0; i < TOLLFREE_HISTOGRAM_BUCKETS; i++) {
		long faults = atomic_long_read(&times[i]);

		if (faults)
			length += sysfs_emit_at(buf, length, "%llu %ld\n",
						tollfree_histogram_low(i),
						faults);
	}
	return length;
}

static ssize_t econ_enabled_show(struct kobject *kobj, struct kobj_attribute *attr,
				 char *buf)
{
	return sysfs_emit(buf, "%d\n", econ_faults_counted);
}

static ssize_t econ_enabled_store(struct kobject *kobj, struct kobj_attribute *attr,
				  const char *buf, size_t count)
{
	ssize_t done = econ_switch_store(&econ_faults_counted, buf, count);

	if (done > 0)
		econ_count_faults();
	return done;
}

static struct kobj_attribute enabled_attr = ECON_ATTR_RW(enabled);

static const struct attribute_group latency_group = {
	.name = "fault_latency",
	.attrs = latency_attrs,
};

/*
 * Decisions: a file of six numbers for each model; the benefit that was lost for lack of a
 * block; and how many huge pages were observed, and used.
 */

static struct kobj_attribute account_attrs[ECON_KINDS];
static struct attribute *stats_attrs[ECON_KINDS + 5];

static ssize_t econ_account_show(struct kobject *kobj, struct kobj_attribute *attr,
				 char *buf)
{
	unsigned int kind = attr - account_attrs;
	struct econ_account *account = &econ_ledger[kind];

	return sysfs_emit(buf,
			  "asked %lld\napproved %lld\ncost_ns %lld\nbenefit_ns %lld\nrefused_ns %lld\nexplored %lld\n",
			  atomic64_read(&account->asked),
			  atomic64_read(&account->approved),
			  atomic64_read(&account->cost),
			  atomic64_read(&account->benefit),
			  atomic64_read(&account->refused),
			  atomic64_read(&econ_explored[kind]));
}

static ssize_t econ_refaults_show(struct kobject *kobj,
				  struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%ld\n",
			  atomic_long_read(&econ_refault_pages));
}

static struct kobj_attribute refaults_attr = ECON_ATTR_RO(refaults);

static ssize_t econ_observed_show(struct kobject *kobj, struct kobj_attribute *attr,
				  char *buf)
{
	long unused = atomic_long_read(&econ_observed[0]);
	long used = atomic_long_read(&econ_observed[1]);

	return sysfs_emit(buf, "regions %ld\nused %ld\n", unused + used, used);
}

static struct kobj_attribute observed_attr = ECON_ATTR_RO(observed);

static ssize_t econ_ledger_show(struct kobject *kobj, struct kobj_attribute *attr,
				char *buf)
{
	return econ_show_ledgers(buf);
}

static struct kobj_attribute ledger_attr = ECON_ATTR_RO(ledger);

#ifdef CONFIG_ECON_BPF
static ssize_t econ_program_show(struct kobject *kobj, struct kobj_attribute *attr,
				 char *buf)
{
	return sysfs_emit(buf, "refused %lld\napproved %lld\n",
			  atomic64_read(&econ_by_program[0]),
			  atomic64_read(&econ_by_program[1]));
}

static struct kobj_attribute program_attr = ECON_ATTR_RO(program);
#endif

static const struct attribute_group stats_group = {
	.name = "stats",
	.attrs = stats_attrs,
};

/* Blocks that are zeroed ahead: limit, number, and a file for each counter. */

static struct kobj_attribute zeroed_attrs[ECON_ZEROED_COUNTS];
static struct attribute *zeroed_group_attrs[ECON_ZEROED_COUNTS + 4];

static ssize_t econ_zeroed_show(struct kobject *kobj, struct kobj_attribute *attr,
				char *buf)
{
	atomic64_t *number = &econ_zeroed_counts[attr - zeroed_attrs];

	return sysfs_emit(buf, "%lld\n", atomic64_read(number));
}

static ssize_t econ_limit_show(struct kobject *kobj, struct kobj_attribute *attr,
			       char *buf)
{
	return sysfs_emit(buf, "%lu\n", READ_ONCE(econ_zeroed_limit));
}

static ssize_t econ_limit_store(struct kobject *kobj, struct kobj_attribute *attr,
				const char *buf, size_t count)
{
	unsigned long limit;
	int err = kstrtoul(buf, 0, &limit);

	if (err)
		return err;
	if (limit > totalram_pages() / HPAGE_PMD_NR)
		return -EINVAL;
	guard(mutex)(&switching);
	WRITE_ONCE(econ_zeroed_limit, limit);
	econ_prezero_adjust_all();
	return count;
}

static ssize_t econ_blocks_show(struct kobject *kobj, struct kobj_attribute *attr,
				char *buf)
{
	return sysfs_emit(buf, "%lu\n", econ_zeroed_blocks());
}

static ssize_t econ_credit_ns_show(struct kobject *kobj,
				   struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", econ_prezero_credit());
}

static struct kobj_attribute credit_attr = ECON_ATTR_RO(credit_ns);
static struct kobj_attribute limit_attr = ECON_ATTR_RW(limit);
static struct kobj_attribute blocks_attr = ECON_ATTR_RO(blocks);

static const struct attribute_group zeroed_group = {
	.name = "zeroed_blocks",
	.attrs = zeroed_group_attrs,
};

static void __init econ_name_zeroed_files(void)
{
	unsigned int i;

	for (i = 0; i < ECON_ZEROED_COUNTS; i++) {
		sysfs_attr_init(&zeroed_attrs[i].attr);
		zeroed_attrs[i].attr.name = econ_zeroed_names[i];
		zeroed_attrs[i].attr.mode = 0444;
		zeroed_attrs[i].show = econ_zeroed_show;
		zeroed_group_attrs[i] = &zeroed_attrs[i].attr;
	}
	zeroed_group_attrs[ECON_ZEROED_COUNTS] = &limit_attr.attr;
	zeroed_group_attrs[ECON_ZEROED_COUNTS + 1] = &blocks_attr.attr;
	zeroed_group_attrs[ECON_ZEROED_COUNTS + 2] = &credit_attr.attr;
}

static void __init econ_name_files(void)
{
	unsigned int i;

	for (i = 0; i < ECON_COSTS; i++) {
		sysfs_attr_init(&cost_attrs[i].attr);
		cost_attrs[i].attr.name = econ_cost_names[i];
		cost_attrs[i].attr.mode = 0644;
		cost_attrs[i].show = econ_cost_show;
		cost_attrs[i].store = econ_cost_store;
		costs_group_attrs[i] = &cost_attrs[i].attr;
	}
	costs_group_attrs[ECON_COSTS] = &frozen_attr.attr;
	costs_group_attrs[ECON_COSTS + 1] = &samples_attr.attr;
	for (i = 0; i < ECON_FAULT_KINDS; i++) {
		sysfs_attr_init(&fault_attrs[i].attr);
		fault_attrs[i].attr.name = fault_names[i];
		fault_attrs[i].attr.mode = 0444;
		fault_attrs[i].show = econ_fault_show;
		latency_attrs[i] = &fault_attrs[i].attr;
	}
	latency_attrs[ECON_FAULT_KINDS] = &enabled_attr.attr;
	for (i = 0; i < ECON_KINDS; i++) {
		sysfs_attr_init(&account_attrs[i].attr);
		account_attrs[i].attr.name = econ_models[i]->name;
		account_attrs[i].attr.mode = 0444;
		account_attrs[i].show = econ_account_show;
		stats_attrs[i] = &account_attrs[i].attr;
	}
	stats_attrs[ECON_KINDS] = &refaults_attr.attr;
	stats_attrs[ECON_KINDS + 1] = &ledger_attr.attr;
	stats_attrs[ECON_KINDS + 2] = &observed_attr.attr;
#ifdef CONFIG_ECON_BPF
	stats_attrs[ECON_KINDS + 3] = &program_attr.attr;
#endif
}

static int __init econ_sysfs_init(void)
{
	static const struct attribute_group *groups[] = {
		&econ_group, &costs_group, &stats_group, &latency_group,
		&zeroed_group, NULL,
	};
	struct kobject *kobj;
	int err;

	econ_costs = econ_default_costs;
	econ_name_files();
	econ_name_zeroed_files();
	kobj = kobject_create_and_add("econ", mm_kobj);
	if (!kobj)
		return -ENOMEM;
	err = sysfs_create_groups(kobj, groups);
	if (err) {
		pr_err("no files in /sys/kernel/mm/econ: %d\n", err);
		kobject_put(kobj);
		return err;
	}
	/* Switch on only if the files to switch off exist. */
	econ_mode = wanted;
	econ_update_keys();
	econ_prezero_adjust_all();
	return 0;
}
late_initcall(econ_sysfs_init);
