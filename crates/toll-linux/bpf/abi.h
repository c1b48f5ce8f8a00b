/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the programs in the kernel and their reader in user space share (crates/toll-linux/src/bpf/abi.rs).
 */
#ifndef TOLL_BPF_ABI_H
#define TOLL_BPF_ABI_H

/* For what is counted. */
enum mode {
	MODE_MACHINE,	/* everything, in one sum */
	MODE_PROCESSES,	/* everything, by process */
	MODE_CGROUP,	/* the tasks below one control group of version 2, in one sum */
	MODE_FOLLOWED,	/* the processes in `followed` and those that they fork, in one sum */
};

enum event {
	EVENT_SHOOTDOWN,	/* interrupts were sent to other CPUs */
	EVENT_FAULT,		/* a sampled minor fault that kept the CPU */
	EVENT_FAULT_SLEPT,	/* one that lost the CPU meanwhile */
	EVENT_RECLAIM,		/* a direct reclaim */
	EVENT_COMPACTION,	/* a direct compaction */
	EVENTS,
};

/* State of a process in `followed`. */
enum followed {
	FOLLOWED_FORKS = 1,	/* only the processes that it forks are counted */
	FOLLOWED_ALL = 2,	/* it is counted too */
};

struct key {
	__u32 process;	/* 0 in a mode with one sum */
	__u32 cpu;
};

struct sum {
	__u64 count;
	__u64 ns;
};

/* The times of faults are squared in units of 64 ns, so that their sum does not overflow. */
#define SQUARED_SHIFT 6

struct totals {
	struct sum sums[EVENTS];
	__u64 fault_squares;
};

#endif
