/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a guest's kernel and programs tell the virtual PMU (plugins/system).
 *
 * An instruction without effect, nopl 0x6c6c6f74(%rax), with an operation in
 * rdi and its arguments in rsi and rdx. Without the plugin nothing happens.
 *
 * A second one, prefetchnta 0x6b6c6f74(%rax), stands before a write of CR3 and
 * takes no register, so that the entry code can use it: the write has bit 63
 * ("keep what is there of this PCID"), which the CPU would refuse while
 * CR4.PCIDE is off. It is no NOP because the kernel rewrites NOPs in its
 * alternatives.
 */
#ifndef TOLL_LAB_MAGIC_H
#define TOLL_LAB_MAGIC_H

/* By programs: a section begins; rsi is the address of its name, rdx the name's length. */
#define TOLL_LAB_BEGIN		1
/* By programs: the section ends, its counts are written. */
#define TOLL_LAB_END		2
/* By programs: misses in rdx bytes from rsi on are also counted apart. */
#define TOLL_LAB_WATCH		3
/*
 * By programs: a step for a recording of stores (plugins/system/stores.c), described by rsi
 * and rdx.
 */
#define TOLL_LAB_STEP		4

/* This CPU goes over to a task: rsi is tgid << 32 | pid, rdx the address of its name. */
#define TOLL_LAB_TASK		16
/*
 * A page fault is handled between these two: rsi of the first is its address, rdx its
 * error code.
 */
#define TOLL_LAB_FAULT_BEGIN	17
#define TOLL_LAB_FAULT_END	18
/*
 * An interrupt, with the softirqs behind it, is handled between these two: rsi of the first
 * is this CPU.
 */
#define TOLL_LAB_IRQ_ENTER	19
#define TOLL_LAB_IRQ_EXIT	20
/* Reclaim or migration took a page from an address space: rsi is the old page table entry. */
#define TOLL_LAB_UNMAP		21
/* Its flush was put off to the end of this task's batch: rdx is 1 if the page is eligible. */
#define TOLL_LAB_BATCH_ADD	22
/* This task's batch is flushed on all CPUs; if nothing was put off, pages that waited in a pool. */
#define TOLL_LAB_BATCH_FLUSH	23
/* A flush runs here between these two: rsi is the CPU that asks, rdx the mm (0: a batch). */
#define TOLL_LAB_FLUSH_BEGIN	24
#define TOLL_LAB_FLUSH_END	25
/* A flush of kernel addresses runs on this CPU. */
#define TOLL_LAB_FLUSH_KERNEL	26
/* What this task flushes between these two is for a reason: rsi is one of those below. */
#define TOLL_LAB_REASON_BEGIN	27
#define TOLL_LAB_REASON_END	28
/* This task asks for pages between these two: rsi of the end is 1 if it got none. */
#define TOLL_LAB_ALLOC_BEGIN	29
#define TOLL_LAB_ALLOC_END	30

/*
 * With toll_lab_frames on the command line: 1 << rdx frames from frame number rsi on get
 * an owner, or lose it.
 */
#define TOLL_LAB_FRAMES_TAKEN	31
#define TOLL_LAB_FRAMES_FREED	32
/* A flush was left out or changed: see toll_lab_plant. */
#define TOLL_LAB_PLANTED	33

#define TOLL_LAB_REASON_NUMA	1	/* the scan of NUMA balancing */
#define TOLL_LAB_REASON_COMPACTION 2	/* memory is compacted */
#define TOLL_LAB_REASONS	3

#endif
