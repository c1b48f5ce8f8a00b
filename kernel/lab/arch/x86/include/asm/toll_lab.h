/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the lab-only seams (9xx) call. They change nothing that a program could
 * see but the kernel's use of PCIDs, which toll_lab_pcid on the command line
 * asks for.
 */
#ifndef _ASM_X86_TOLL_LAB_H
#define _ASM_X86_TOLL_LAB_H

#include <linux/toll_lab_magic.h>

#ifdef __ASSEMBLY__

.macro TOLL_LAB_KEEP
	/* prefetchnta 0x6b6c6f74 off rax */
	.byte	0x0f, 0x18, 0x80, 0x74, 0x6f, 0x6c, 0x6b
.endm

#else /* !__ASSEMBLY__ */

#include <linux/cleanup.h>
#include <linux/compiler.h>
#include <linux/init.h>
#include <linux/jump_label.h>
#include <linux/limits.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <asm/cmdline.h>
#include <asm/cpufeature.h>
#include <asm/processor-flags.h>
#include <asm/setup.h>

static __always_inline void toll_lab_say(unsigned long what, unsigned long first,
					 unsigned long second)
{
	asm volatile("nopl 0x6c6c6f74(%%rax)"
		     : : "D" (what), "S" (first), "d" (second) : "memory");
}

/*
 * PCIDs in software: the emulated CPU has none, so that the kernel's logic of
 * address space identifiers would never run. The feature is forced; CR4.PCIDE
 * stays off in the register (and on in the kernel's shadow of it), and bit 63
 * of CR3 is announced and not written. The PCID itself goes into CR3, where
 * the CPU ignores it and gives it back.
 */
void __init toll_lab_plant(void);

static inline void __init toll_lab_force_pcid(void)
{
	toll_lab_plant();
	if (cmdline_find_option_bool(boot_command_line, "toll_lab_pcid"))
		setup_force_cpu_cap(X86_FEATURE_PCID);
}

static __always_inline unsigned long toll_lab_cr4(unsigned long cr4)
{
	return cr4 & ~X86_CR4_PCIDE;
}

static __always_inline unsigned long toll_lab_cr3(unsigned long cr3)
{
	if (cr3 & X86_CR3_PCID_NOFLUSH)
		asm volatile("prefetchnta 0x6b6c6f74(%%rax)" : : : "memory");
	return cr3 & ~X86_CR3_PCID_NOFLUSH;
}

/* For the virtual PMU, which reads page tables there. */
void __init toll_lab_share_direct_map(void);

DECLARE_STATIC_KEY_FALSE(toll_lab_plant_asid);
DECLARE_STATIC_KEY_FALSE(toll_lab_plant_user_flush);

/* Planted: every address space gets the first identifier, without a flush. */
static __always_inline void toll_lab_wrong_asid(u16 *asid, bool *need_flush)
{
	if (static_branch_unlikely(&toll_lab_plant_asid)) {
		*asid = 0;
		*need_flush = false;
	}
}

/* Planted: the half of an address space that user mode has is never flushed. */
static __always_inline bool toll_lab_drops_user_flush(void)
{
	return static_branch_unlikely(&toll_lab_plant_user_flush);
}

static __always_inline void toll_lab_task(const struct task_struct *task)
{
	toll_lab_say(TOLL_LAB_TASK, (unsigned long)task->tgid << 32 | task->pid,
		     (unsigned long)task->comm);
}

/*
 * Planted: a flush with a certain function among its callers is left out, or is
 * incomplete. True if it is left out.
 */
DECLARE_STATIC_KEY_FALSE(toll_lab_plant_flush);
bool __toll_lab_spoils_flush(unsigned long start, unsigned long *end, bool *freed_tables);

static __always_inline bool toll_lab_spoils_flush(unsigned long start, unsigned long *end,
						  bool *freed_tables)
{
	return static_branch_unlikely(&toll_lab_plant_flush) &&
	       __toll_lab_spoils_flush(start, end, freed_tables);
}

/* The same for a flush of all addresses. */
static __always_inline bool toll_lab_drops_flush(void)
{
	unsigned long end = ULONG_MAX;
	bool freed_tables = false;

	return toll_lab_spoils_flush(0, &end, &freed_tables);
}

static __always_inline void toll_lab_fault_begin(unsigned long address, unsigned long error_code)
{
	toll_lab_say(TOLL_LAB_FAULT_BEGIN, address, error_code);
}

static __always_inline void toll_lab_fault_end(void)
{
	toll_lab_say(TOLL_LAB_FAULT_END, 0, 0);
}

static __always_inline void toll_lab_irq_enter(void)
{
	toll_lab_say(TOLL_LAB_IRQ_ENTER, raw_smp_processor_id(), 0);
}

static __always_inline void toll_lab_irq_exit(void)
{
	toll_lab_say(TOLL_LAB_IRQ_EXIT, 0, 0);
}

static __always_inline void toll_lab_unmap(unsigned long pte)
{
	toll_lab_say(TOLL_LAB_UNMAP, pte, 0);
}

DECLARE_STATIC_KEY_FALSE(toll_lab_frames);

static __always_inline void toll_lab_frames_taken(unsigned long pfn, unsigned int order)
{
	if (static_branch_unlikely(&toll_lab_frames))
		toll_lab_say(TOLL_LAB_FRAMES_TAKEN, pfn, order);
}

static __always_inline void toll_lab_frames_freed(unsigned long pfn, unsigned int order)
{
	if (static_branch_unlikely(&toll_lab_frames))
		toll_lab_say(TOLL_LAB_FRAMES_FREED, pfn, order);
}

static __always_inline void toll_lab_batch_flush(void)
{
	toll_lab_say(TOLL_LAB_BATCH_FLUSH, 0, 0);
}

static __always_inline void toll_lab_flush_kernel(void)
{
	toll_lab_say(TOLL_LAB_FLUSH_KERNEL, 0, 0);
}

/* What is flushed from CLASS(toll_lab_reason, reason)(why) to the function's end is for that. */
DEFINE_CLASS(toll_lab_reason, unsigned long,
	     toll_lab_say(TOLL_LAB_REASON_END, _T, 0),
	     ({ toll_lab_say(TOLL_LAB_REASON_BEGIN, why, 0); why; }),
	     unsigned long why)

/* A flush that @cpu asked for, from CLASS(toll_lab_flush, flush)(cpu, mm) to the function's end. */
DEFINE_CLASS(toll_lab_flush, unsigned int,
	     toll_lab_say(TOLL_LAB_FLUSH_END, _T, 0),
	     ({ toll_lab_say(TOLL_LAB_FLUSH_BEGIN, cpu, (unsigned long)mm); cpu; }),
	     unsigned int cpu, const struct mm_struct *mm)

#endif /* !__ASSEMBLY__ */
#endif /* _ASM_X86_TOLL_LAB_H */
