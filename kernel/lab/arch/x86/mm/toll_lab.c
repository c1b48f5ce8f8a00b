// SPDX-License-Identifier: GPL-2.0-only
/* Out-of-line functions of the lab-only seams. */
#include <linux/init.h>
#include <linux/pgtable.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <asm/cmdline.h>
#include <asm/setup.h>
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
 * Bugs that the lab injects, by toll_lab_plant=NAME on the command line, to check that
 * it detects them. The emulated CPU flushes with every write of CR3, so that only the
 * virtual PMU sees the effect.
 */
DEFINE_STATIC_KEY_FALSE(toll_lab_plant_asid);
DEFINE_STATIC_KEY_FALSE(toll_lab_plant_user_flush);

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
