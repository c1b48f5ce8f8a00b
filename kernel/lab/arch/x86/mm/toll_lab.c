// SPDX-License-Identifier: GPL-2.0-only
/* Out-of-line functions of the lab-only seams. */
#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/moduleparam.h>
#include <linux/pgtable.h>
#include <linux/printk.h>
#include <linux/stacktrace.h>
#include <linux/string.h>
#include <asm/cmdline.h>
#include <asm/setup.h>
#include <asm/tlbflush.h>
#include <asm/toll_lab.h>

#ifdef CONFIG_MITIGATION_PAGE_TABLE_ISOLATION
/* One entry of the top level is 512 GiB: all of an emulated machine. */
void __init toll_lab_share_direct_map(void)
{
	pgd_t *pgd = pgd_offset_k(PAGE_OFFSET);

	*kernel_to_user_pgdp(pgd) = *pgd;
}
#endif

/*
 * Bugs that the lab injects, to check that it detects them. The emulated CPU flushes with
 * every write of CR3, so that only the plugins see the effect of the first two, by
 * toll_lab_plant=NAME on the command line:
 *
 * asid			every address space gets the first identifier
 * user-flush		the half of an address space that user mode has is not flushed
 *
 * The others are written to /sys/module/toll_lab/parameters/spoil;
 * "nothing" ends them:
 *
 * drop:FUNCTION	a flush with FUNCTION among its callers is left out
 * short:FUNCTION	the last page of its range is not flushed
 * tables:FUNCTION	CPUs that only cache tables of the address space are left out
 */
DEFINE_STATIC_KEY_FALSE(toll_lab_plant_asid);
DEFINE_STATIC_KEY_FALSE(toll_lab_plant_user_flush);
DEFINE_STATIC_KEY_FALSE(toll_lab_plant_flush);

enum toll_lab_spoil { TOLL_LAB_DROP, TOLL_LAB_SHORT, TOLL_LAB_TABLES, TOLL_LAB_SPOILS };

static const char *const toll_lab_spoils[TOLL_LAB_SPOILS] = {
	[TOLL_LAB_DROP] = "drop:",
	[TOLL_LAB_SHORT] = "short:",
	[TOLL_LAB_TABLES] = "tables:",
};

/* How flushes are spoiled, and the code of the function that must be among their callers. */
static enum toll_lab_spoil toll_lab_spoil;
static unsigned long toll_lab_caller, toll_lab_caller_size;

static bool toll_lab_is_called(void)
{
	unsigned long callers[24];
	unsigned int i, count = stack_trace_save(callers, ARRAY_SIZE(callers), 2);

	for (i = 0; i < count; i++)
		if (callers[i] - toll_lab_caller < toll_lab_caller_size)
			return true;
	return false;
}

/**
 * __toll_lab_spoils_flush - inject a bug into a flush, if it is one of those to spoil
 * @start: first address
 * @end: end of the addresses, may be changed
 * @freed_tables: whether page tables are freed after it, may be changed
 *
 * Context: any.
 * Return: true if the flush must be left out.
 */
bool __toll_lab_spoils_flush(unsigned long start, unsigned long *end, bool *freed_tables)
{
	if (!toll_lab_is_called())
		return false;
	if (toll_lab_spoil == TOLL_LAB_TABLES && !*freed_tables)
		return false;
	toll_lab_say(TOLL_LAB_PLANTED, start, *end);
	if (toll_lab_spoil == TOLL_LAB_TABLES)
		*freed_tables = false;
	else if (toll_lab_spoil == TOLL_LAB_SHORT && *end != TLB_FLUSH_ALL &&
		 *end - start > PAGE_SIZE)
		*end -= PAGE_SIZE;
	else
		return true;
	return false;
}

/* Finds a function, also where the compiler has changed its parameters, and its size. */
static unsigned long toll_lab_find_function(const char *name, unsigned long *size)
{
	static const char *const suffixes[] = { "", ".constprop.0", ".isra.0" };
	unsigned long at;
	char full[80];
	int i;

	for (i = 0; i < ARRAY_SIZE(suffixes); i++) {
		snprintf(full, sizeof(full), "%s%s", name, suffixes[i]);
		at = kallsyms_lookup_name(full);
		if (at && kallsyms_lookup_size_offset(at, size, NULL))
			return at;
	}
	return 0;
}

/* Finds the function of "drop:FUNCTION". */
static int toll_lab_find_caller(const char *name)
{
	unsigned long caller, size;
	size_t length;
	int i;

	for (i = 0; i < TOLL_LAB_SPOILS; i++) {
		length = str_has_prefix(name, toll_lab_spoils[i]);
		if (length)
			break;
	}
	if (i == TOLL_LAB_SPOILS)
		return -EINVAL;
	caller = toll_lab_find_function(name + length, &size);
	if (!caller)
		return -ENOENT;
	toll_lab_spoil = i;
	toll_lab_caller = caller;
	toll_lab_caller_size = size;
	return 0;
}

static int toll_lab_set_spoil(const char *text, const struct kernel_param *param)
{
	char name[64];
	int error;

	if (strscpy(name, text, sizeof(name)) < 0)
		return -EINVAL;
	static_branch_disable(&toll_lab_plant_flush);
	if (!strcmp(strim(name), "nothing"))
		return 0;
	error = toll_lab_find_caller(strim(name));
	if (!error)
		static_branch_enable(&toll_lab_plant_flush);
	return error;
}

static const struct kernel_param_ops toll_lab_spoil_ops = { .set = toll_lab_set_spoil };
module_param_cb(spoil, &toll_lab_spoil_ops, NULL, 0200);

void __init toll_lab_plant(void)
{
	char name[16];

	if (cmdline_find_option(boot_command_line, "toll_lab_plant", name,
				sizeof(name)) <= 0)
		return;
	if (!strcmp(name, "asid"))
		static_branch_enable(&toll_lab_plant_asid);
	else if (!strcmp(name, "user-flush"))
		static_branch_enable(&toll_lab_plant_user_flush);
	else
		pr_warn("lab: %s: unknown bug\n", name);
}

/* Whether owners of frames are announced. */
DEFINE_STATIC_KEY_FALSE(toll_lab_frames);

static int __init toll_lab_announce_frames(char *text)
{
	static_branch_enable(&toll_lab_frames);
	return 0;
}
early_param("toll_lab_frames", toll_lab_announce_frames);
