// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/mm/econ: the mode, the prices and what was decided. The files are
 * described in Documentation/ABI/testing/sysfs-kernel-mm-econ.
 */

#define pr_fmt(fmt) "econ: " fmt

#include <linux/init.h>
#include <linux/kobject.h>
#include <linux/kstrtox.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "internal.h"

static DEFINE_MUTEX(switching);

/* The mode */

const char *const econ_mode_names[ECON_MODES] = {
	[ECON_OFF] = "off",
	[ECON_OBSERVE] = "observe",
	[ECON_ON] = "on",
	[ECON_AS_MACHINE] = "default",
};

/**
 * econ_parse_mode - a mode by its name
 * @text: the name, perhaps with a newline
 * @modes: how many there are to choose from
 *
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

static void set_mode(enum econ_mode mode)
{
	WRITE_ONCE(econ_mode, mode);
	if (mode == ECON_OFF)
		static_branch_disable(&econ_key);
	else
		static_branch_enable(&econ_key);
}

static ssize_t mode_show(struct kobject *kobj, struct kobj_attribute *attr,
			 char *buf)
{
	return sysfs_emit(buf, "%s\n", econ_mode_names[READ_ONCE(econ_mode)]);
}

static ssize_t mode_store(struct kobject *kobj, struct kobj_attribute *attr,
			  const char *buf, size_t count)
{
	int mode = econ_parse_mode(buf, ECON_AS_MACHINE);

	if (mode < 0)
		return mode;
	guard(mutex)(&switching);
	set_mode(mode);
	return count;
}

static struct kobj_attribute mode_attr = __ATTR_RW(mode);

static struct attribute *econ_attrs[] = {
	&mode_attr.attr,
	NULL,
};

static const struct attribute_group econ_group = {
	.attrs = econ_attrs,
};

/* The prices, in nanoseconds */

const char *const econ_price_names[ECON_PRICES] = {
	[ECON_FAULT] = "fault",
	[ECON_HUGE_FAULT] = "huge_fault",
	[ECON_CLEAR_PAGE] = "clear_page",
	[ECON_CLEAR_HUGE] = "clear_huge",
	[ECON_COMPACT_BLOCK] = "compact_block",
	[ECON_COLLAPSE] = "collapse",
	[ECON_SPLIT] = "split",
	[ECON_RECLAIM_PAGE] = "reclaim_page",
};

static struct kobj_attribute price_attrs[ECON_PRICES];
static struct attribute *costs_attrs[ECON_PRICES + 1];

static ssize_t price_show(struct kobject *kobj, struct kobj_attribute *attr,
			  char *buf)
{
	return sysfs_emit(buf, "%llu\n",
			  READ_ONCE(econ_prices.ns[attr - price_attrs]));
}

static ssize_t price_store(struct kobject *kobj, struct kobj_attribute *attr,
			   const char *buf, size_t count)
{
	u64 ns;
	int err = kstrtou64(buf, 0, &ns);

	if (err)
		return err;
	WRITE_ONCE(econ_prices.ns[attr - price_attrs], ns);
	return count;
}

static const struct attribute_group costs_group = {
	.name = "costs",
	.attrs = costs_attrs,
};

/* What was decided: for each model a file of five numbers. */

static struct kobj_attribute account_attrs[ECON_KINDS];
static struct attribute *stats_attrs[ECON_KINDS + 1];

static ssize_t account_show(struct kobject *kobj, struct kobj_attribute *attr,
			    char *buf)
{
	struct econ_account *account = &econ_ledger[attr - account_attrs];

	return sysfs_emit(buf,
			  "asked %lld\ngone %lld\ncost_ns %lld\nbenefit_ns %lld\nrefused_ns %lld\n",
			  atomic64_read(&account->asked),
			  atomic64_read(&account->gone),
			  atomic64_read(&account->cost),
			  atomic64_read(&account->benefit),
			  atomic64_read(&account->refused));
}

static const struct attribute_group stats_group = {
	.name = "stats",
	.attrs = stats_attrs,
};

static void __init name_files(void)
{
	unsigned int i;

	for (i = 0; i < ECON_PRICES; i++) {
		sysfs_attr_init(&price_attrs[i].attr);
		price_attrs[i].attr.name = econ_price_names[i];
		price_attrs[i].attr.mode = 0644;
		price_attrs[i].show = price_show;
		price_attrs[i].store = price_store;
		costs_attrs[i] = &price_attrs[i].attr;
	}
	for (i = 0; i < ECON_KINDS; i++) {
		sysfs_attr_init(&account_attrs[i].attr);
		account_attrs[i].attr.name = econ_models[i]->name;
		account_attrs[i].attr.mode = 0444;
		account_attrs[i].show = account_show;
		stats_attrs[i] = &account_attrs[i].attr;
	}
}

static int __init econ_sysfs_init(void)
{
	static const struct attribute_group *groups[] = {
		&econ_group, &costs_group, &stats_group, NULL,
	};
	struct kobject *kobj;
	int err;

	econ_prices = econ_usual_prices;
	name_files();
	kobj = kobject_create_and_add("econ", mm_kobj);
	if (!kobj)
		return -ENOMEM;
	err = sysfs_create_groups(kobj, groups);
	if (err) {
		pr_err("no files in /sys/kernel/mm/econ: %d\n", err);
		kobject_put(kobj);
		return err;
	}
	/* Only what can be switched off again is switched on. */
	set_mode(wanted);
	return 0;
}
late_initcall(econ_sysfs_init);
