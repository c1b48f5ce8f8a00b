// SPDX-License-Identifier: GPL-2.0-only
/* Test cases of all models, and tests that depend on the kernel's own sort and memory. */

#include <kunit/test.h>

#include <linux/array_size.h>
#include <linux/delay.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/preempt.h>
#include <linux/processor.h>
#include <linux/sched/cputime.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

#include "../internal.h"
#include "internal.h"

static void econ_test_model_cases(struct kunit *test)
{
	unsigned int kind, i;

	for (kind = 0; kind < ECON_KINDS; kind++) {
		const struct econ_model *model = econ_models[kind];

		for (i = 0; i < model->nr_cases; i++) {
			const struct econ_case *it = &model->cases[i];
			struct econ_estimate estimate =
				econ_estimate(&it->action, &econ_default_costs);

			KUNIT_EXPECT_EQ_MSG(test, econ_pays(estimate), it->go,
					    "%s: %s", model->name, it->what);
		}
	}
}

static const char text[] =
	"mm_profile 1\n"
	"program redis-server\n"
	"run 1000000000\n"
	"mmap 2 30 3 0x200000 0x600000 1900000 512 75\n"
	"mmap 2 30 3 0 0x200000 7 512 75\n"
	"heap 0 0x400000 250000 480 90\n"
	"end 3\n";

static void econ_test_parse_profile(struct kunit *test)
{
	struct econ_site_key key = {
		.site = ECON_MMAP, .class = 30, .protection = 3, .ordinal = 2,
	};
	struct econ_parse_error error = {};
	struct econ_holder *holder;
	const struct econ_row *row;
	u32 nr;

	holder = econ_new_profile(text, strlen(text), &error);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, holder);
	KUNIT_EXPECT_STREQ(test, holder->profile.name, "redis-server");
	row = econ_rows_of(&holder->profile, &key, &nr);
	KUNIT_EXPECT_EQ(test, nr, 2U);
	KUNIT_EXPECT_EQ(test, row[0].benefit_ns, 7ULL);
	KUNIT_EXPECT_EQ(test, row[1].benefit_ns, 1900000ULL);
	econ_put_profile(holder);
}

static void econ_test_refuse_truncated_profile(struct kunit *test)
{
	struct econ_parse_error error = {};
	size_t length;

	for (length = 0; length < strlen(text) - 1; length++) {
		struct econ_holder *holder = econ_new_profile(text, length, &error);

		KUNIT_EXPECT_EQ(test, PTR_ERR(holder), -EINVAL);
		KUNIT_EXPECT_NOT_NULL(test, error.reason);
	}
}

/* A large profile, put in atomic context as by __put_task_struct(). */
static void econ_test_put_profile_in_atomic_context(struct kunit *test)
{
	struct econ_holder *holder = vzalloc(struct_size(holder, rows, 31000));

	KUNIT_ASSERT_NOT_NULL(test, holder);
	refcount_set(&holder->users, 1);
	preempt_disable();
	econ_put_profile(holder);
	preempt_enable();
}

static void econ_test_sums_saturate(struct kunit *test)
{
	atomic64_t sum = ATOMIC64_INIT(5);

	econ_count_ns(&sum, 7);
	KUNIT_EXPECT_EQ(test, atomic64_read(&sum), 12LL);
	econ_count_ns(&sum, S64_MAX - 20);
	KUNIT_EXPECT_EQ(test, atomic64_read(&sum), S64_MAX - 8);
	econ_count_ns(&sum, 9);
	KUNIT_EXPECT_EQ(test, atomic64_read(&sum), S64_MAX);
	econ_count_ns(&sum, U64_MAX);
	KUNIT_EXPECT_EQ(test, atomic64_read(&sum), S64_MAX);
}

/*
 * Run for some time. mdelay() is wrong by a factor where an emulator could not calibrate
 * it, and while another task has the CPU the clock goes on.
 */
static void econ_test_spin(u64 ns)
{
	u64 end = task_sched_runtime(current) + ns;

	while (task_sched_runtime(current) < end)
		cpu_relax();
}

/*
 * A planted operation of 6 ms, longer than a tick, during which the task is interrupted
 * and sleeps for 200 ms. It outweighs the cost so far, which is a sample too, when it
 * came twice.
 */
static void econ_test_long_operations_have_samples(struct kunit *test)
{
	static const u64 before[] = { 1, 900000000 };
	u64 was = READ_ONCE(econ_costs.ns[ECON_SPLIT]), now;
	struct econ_watch watch = {};
	unsigned int i, times;

	for (i = 0; i < ARRAY_SIZE(before); i++) {
		econ_forget_samples();
		WRITE_ONCE(econ_costs.ns[ECON_SPLIT], before[i]);
		for (times = 0; times < 2; times++) {
			__econ_watch_begin(&watch);
			econ_test_spin(6000000);
			msleep(200);
			__econ_watch_cost(&watch, ECON_SPLIT);
		}
		now = READ_ONCE(econ_costs.ns[ECON_SPLIT]);
		KUNIT_EXPECT_GE(test, now, 5000000ULL);
		KUNIT_EXPECT_LE(test, now, 100000000ULL);
	}
	econ_forget_samples();
	WRITE_ONCE(econ_costs.ns[ECON_SPLIT], was);
}

/* A zone with so much free memory above its low watermark, in single pages on no list. */
static struct zone *econ_test_zone(struct kunit *test, unsigned long spare)
{
	struct zone *zone = kunit_kzalloc(test, sizeof(*zone), GFP_KERNEL);
	unsigned int order, type;

	KUNIT_ASSERT_NOT_NULL(test, zone);
	spin_lock_init(&zone->lock);
	for_each_migratetype_order(order, type)
		INIT_LIST_HEAD(&zone->free_area[order].free_list[type]);
	zone->present_pages = 16 * HPAGE_PMD_NR;
	zone->_watermark[WMARK_LOW] = 100;
	zone->free_area[0].nr_free = 100 + spare;
	atomic_long_set(&zone->vm_stat[NR_FREE_PAGES], 100 + spare);
	return zone;
}

static bool econ_test_may_compact(struct kunit *test, unsigned long spare)
{
	struct econ_compaction it = {
		.order = HPAGE_PMD_ORDER, .is_ours = true, .is_explored = true,
	};
	struct compact_control cc = {};

	return econ_may_compact(&it, &cc, econ_test_zone(test, spare));
}

/*
 * Compaction needs twice the pages of the block (compact_gap()), above what is reserved in
 * a low zone. An attempt that ends at once would be paid all the same.
 */
static void econ_test_no_attempt_without_room(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, econ_test_may_compact(test, 2 * HPAGE_PMD_NR + 100));
	KUNIT_EXPECT_FALSE(test, econ_test_may_compact(test, 2 * HPAGE_PMD_NR - 100));
}

static struct kunit_case econ_cases[] = {
	KUNIT_CASE(econ_test_no_attempt_without_room),
	KUNIT_CASE(econ_test_long_operations_have_samples),
	KUNIT_CASE(econ_test_put_profile_in_atomic_context),
	KUNIT_CASE(econ_test_sums_saturate),
	KUNIT_CASE(econ_test_model_cases),
	KUNIT_CASE(econ_test_parse_profile),
	KUNIT_CASE(econ_test_refuse_truncated_profile),
	{}
};

static struct kunit_suite econ_suite = {
	.name = "econ",
	.test_cases = econ_cases,
};

kunit_test_suite(econ_suite);
