// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/mm/luf: switch, limits and counters. See
 * Documentation/ABI/testing/sysfs-kernel-mm-luf.
 */

#define pr_fmt(fmt) "luf: " fmt

#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/sysfs.h>

#include "internal.h"

#define LUF_ATTR_RO(_name)	__ATTR(_name, 0444, luf_##_name##_show, NULL)
#define LUF_ATTR_WO(_name)	__ATTR(_name, 0200, NULL, luf_##_name##_store)
#define LUF_ATTR_RW(_name)	\
	__ATTR(_name, 0644, luf_##_name##_show, luf_##_name##_store)

static DEFINE_MUTEX(switching);
static bool wanted = IS_ENABLED(CONFIG_LUF_DEFAULT_ON);

static int __init luf_setup(char *text)
{
	return kstrtobool(text, &wanted);
}
early_param("luf", luf_setup);

/* The switch */

static void luf_enable(void)
{
	/* Enable the gates before the first lazy unmap. */
	static_branch_enable(&luf_gate_key);
	static_branch_enable(&luf_key);
}

/* On return no page waits for a flush, and every stamp is drained. */
static void luf_disable(void)
{
	static_branch_disable(&luf_key);
	synchronize_srcu(&luf_runs);
	luf_drain_everything(LUF_FOR_DRAIN);
	static_branch_disable(&luf_gate_key);
}

static ssize_t luf_enabled_show(struct kobject *kobj, struct kobj_attribute *attr,
				char *buf)
{
	return sysfs_emit(buf, "%d\n", static_key_enabled(&luf_key));
}

static ssize_t luf_enabled_store(struct kobject *kobj, struct kobj_attribute *attr,
				 const char *buf, size_t count)
{
	bool on;
	int err = kstrtobool(buf, &on);

	if (err)
		return err;
	guard(mutex)(&switching);
	if (on == static_key_enabled(&luf_key))
		return count;
	if (on)
		luf_enable();
	else
		luf_disable();
	return count;
}

/* The limits */

/* Limits are numbers of pages, at most those of the machine. */
static ssize_t luf_limit_store(unsigned long *limit, const char *buf, size_t count)
{
	unsigned long pages;
	int err = kstrtoul(buf, 0, &pages);

	if (err)
		return err;
	if (pages > totalram_pages())
		return -EINVAL;
	guard(mutex)(&switching);
	*limit = pages;
	luf_resize_pools();
	return count;
}

static ssize_t luf_pool_max_pages_show(struct kobject *kobj,
				       struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", luf_pool_max_pages);
}

static ssize_t luf_pool_max_pages_store(struct kobject *kobj,
					struct kobj_attribute *attr,
					const char *buf, size_t count)
{
	return luf_limit_store(&luf_pool_max_pages, buf, count);
}

static ssize_t luf_direct_batch_pages_show(struct kobject *kobj,
					   struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", luf_direct_batch_pages);
}

static ssize_t luf_direct_batch_pages_store(struct kobject *kobj,
					    struct kobj_attribute *attr,
					    const char *buf, size_t count)
{
	return luf_limit_store(&luf_direct_batch_pages, buf, count);
}

static ssize_t luf_max_age_ms_show(struct kobject *kobj,
				   struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", luf_max_age_ms);
}

static ssize_t luf_max_age_ms_store(struct kobject *kobj,
				    struct kobj_attribute *attr, const char *buf,
				    size_t count)
{
	unsigned int ms;
	int err = kstrtouint(buf, 0, &ms);

	if (err)
		return err;
	if (!ms || ms > INT_MAX)
		return -EINVAL;
	WRITE_ONCE(luf_max_age_ms, ms);
	luf_age_changed();
	return count;
}

static ssize_t luf_drain_store(struct kobject *kobj, struct kobj_attribute *attr,
			       const char *buf, size_t count)
{
	bool now;
	int err = kstrtobool(buf, &now);

	if (err)
		return err;
	if (!now)
		return -EINVAL;
	luf_drain_everything(LUF_FOR_DRAIN);
	return count;
}

static ssize_t luf_pool_pages_show(struct kobject *kobj,
				   struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lu\n", __luf_pages());
}

static ssize_t luf_pool_size_pages_show(struct kobject *kobj,
					struct kobj_attribute *attr, char *buf)
{
	unsigned long pages = 0;
	int nid;

	for_each_online_node(nid)
		pages += luf_node_cap(nid);
	return sysfs_emit(buf, "%lu\n", pages);
}

#ifdef CONFIG_LUF_DEBUG
static ssize_t luf_debug_flush_delay_ms_show(struct kobject *kobj,
					     struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", READ_ONCE(luf_debug_delay_ms));
}

static ssize_t luf_debug_flush_delay_ms_store(struct kobject *kobj,
					      struct kobj_attribute *attr,
					      const char *buf, size_t count)
{
	unsigned int ms;
	int err = kstrtouint(buf, 0, &ms);

	if (err)
		return err;
	if (ms > 10 * MSEC_PER_SEC)
		return -EINVAL;
	WRITE_ONCE(luf_debug_delay_ms, ms);
	return count;
}

static struct kobj_attribute debug_flush_delay_ms_attr =
	LUF_ATTR_RW(debug_flush_delay_ms);
#endif

static struct kobj_attribute enabled_attr = LUF_ATTR_RW(enabled);
static struct kobj_attribute pool_max_pages_attr = LUF_ATTR_RW(pool_max_pages);
static struct kobj_attribute direct_batch_pages_attr =
	LUF_ATTR_RW(direct_batch_pages);
static struct kobj_attribute max_age_ms_attr = LUF_ATTR_RW(max_age_ms);
static struct kobj_attribute drain_attr = LUF_ATTR_WO(drain);
static struct kobj_attribute pool_pages_attr = LUF_ATTR_RO(pool_pages);
static struct kobj_attribute pool_size_pages_attr =
	LUF_ATTR_RO(pool_size_pages);

static struct attribute *luf_attrs[] = {
	&enabled_attr.attr,
	&pool_max_pages_attr.attr,
	&direct_batch_pages_attr.attr,
	&max_age_ms_attr.attr,
	&drain_attr.attr,
	&pool_pages_attr.attr,
	&pool_size_pages_attr.attr,
#ifdef CONFIG_LUF_DEBUG
	&debug_flush_delay_ms_attr.attr,
#endif
	NULL,
};

static const struct attribute_group luf_group = {
	.attrs = luf_attrs,
};

/* The counters */

static const char * const names[] = {
	[LUF_DEFERRED] = "deferred_kswapd",
	[LUF_DEFERRED_DIRECT] = "deferred_direct",
	[LUF_DEFERRED_DEMOTION] = "deferred_demotion",
	[LUF_DEFERRED_PROMOTION] = "deferred_promotion",
	[LUF_DEFERRED_COMPACTION] = "deferred_compaction",
	[LUF_REFUSED_KIND] = "refused_kind",
	[LUF_REFUSED_MAPPING] = "refused_mapping",
	[LUF_REFUSED_WRITER] = "refused_writer",
	[LUF_REFUSED_ZONE] = "refused_zone",
	[LUF_REFUSED_WRITABLE] = "refused_writable",
	[LUF_REFUSED_LOCAL] = "refused_local",
	[LUF_REFUSED_LATE_WRITER] = "refused_late_writer",
	[LUF_REFUSED_BATCH] = "refused_batch",
	[LUF_UNMAPPED_READ_ONLY] = "unmapped_read_only",
	[LUF_UNMAPPED_WRITABLE] = "unmapped_writable",
	[LUF_FLUSHES] = "flushes_allocation",
	[LUF_FLUSHES_KSWAPD] = "flushes_kswapd",
	[LUF_FLUSHES_RECLAIM] = "flushes_reclaim",
	[LUF_FLUSHES_CAP] = "flushes_cap",
	[LUF_FLUSHES_AGE] = "flushes_age",
	[LUF_FLUSHES_DRAIN] = "flushes_drain",
	[LUF_FLUSHES_WRITER] = "flushes_writer",
	[LUF_FLUSHES_COMPACTION] = "flushes_compaction",
	[LUF_FLUSHES_KEPT] = "flushes_kept",
	[LUF_FLUSHES_MM] = "flushes_mm",
	[LUF_FLUSHES_PTE] = "flushes_pte",
	[LUF_CPUS_INTERRUPTED] = "cpus_interrupted",
	[LUF_CPUS_SPARED] = "cpus_spared",
	[LUF_RELEASED_FLUSHED] = "released_flushed",
	[LUF_RELEASED_ELIDED] = "released_elided",
	[LUF_ROOM_WAITED] = "room_waited",
	[LUF_WRITERS_WAITED] = "writers_waited",
	[LUF_WRITERS_NS] = "writers_ns",
};

static_assert(ARRAY_SIZE(names) == LUF_COUNTS);

static struct kobj_attribute count_attrs[LUF_COUNTS];

static ssize_t luf_count_show(struct kobject *kobj, struct kobj_attribute *attr,
			      char *buf)
{
	unsigned long sum = 0;
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(luf_counts[attr - count_attrs], cpu));
	return sysfs_emit(buf, "%lu\n", sum);
}

static ssize_t luf_longest_drain_ns_show(struct kobject *kobj,
					 struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%llu\n", READ_ONCE(luf_longest_drain_ns));
}

/* A line for each bucket that is not empty: its smallest value and its count. */
static ssize_t luf_pages_per_drain_show(struct kobject *kobj,
					struct kobj_attribute *attr, char *buf)
{
	int length = 0, i;

	for (i = 1; i < TOLLFREE_HISTOGRAM_BUCKETS; i++) {
		long drains = atomic_long_read(&luf_drain_sizes[i]);

		if (drains)
			length += sysfs_emit_at(buf, length, "%llu %ld\n",
						tollfree_histogram_low(i),
						drains);
	}
	return length;
}

static struct kobj_attribute longest_drain_ns_attr =
	LUF_ATTR_RO(longest_drain_ns);
static struct kobj_attribute pages_per_drain_attr =
	LUF_ATTR_RO(pages_per_drain);

static struct attribute *stats_attrs[LUF_COUNTS + 3];

static const struct attribute_group stats_group = {
	.name = "stats",
	.attrs = stats_attrs,
};

static int __init luf_sysfs_init(void)
{
	struct kobject *kobj;
	unsigned int i;
	int err;

	for (i = 0; i < LUF_COUNTS; i++) {
		sysfs_attr_init(&count_attrs[i].attr);
		count_attrs[i].attr.name = names[i];
		count_attrs[i].attr.mode = 0444;
		count_attrs[i].show = luf_count_show;
		stats_attrs[i] = &count_attrs[i].attr;
	}
	stats_attrs[LUF_COUNTS] = &longest_drain_ns_attr.attr;
	stats_attrs[LUF_COUNTS + 1] = &pages_per_drain_attr.attr;

	kobj = kobject_create_and_add("luf", mm_kobj);
	if (!kobj)
		return -ENOMEM;
	err = sysfs_create_group(kobj, &luf_group);
	if (!err)
		err = sysfs_create_group(kobj, &stats_group);
	if (err) {
		pr_err("no files in /sys/kernel/mm/luf: %d\n", err);
		kobject_put(kobj);
		return err;
	}
	/* Switch on only if the files to switch off exist. */
	if (wanted)
		luf_enable();
	return 0;
}
late_initcall(luf_sysfs_init);
