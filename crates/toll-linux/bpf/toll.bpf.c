// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Counts and times what virtual memory costs, inside the kernel: TLB shootdowns that were sent, page faults, direct
 * reclaim and direct compaction.
 *
 * User space sets `mode` and `fault_sampling` before it loads the programs. Sums are kept by process and CPU, so that
 * no two CPUs write to the same one; user space adds them up and removes those of ended processes.
 *
 * Nothing here depends on the layout of a kernel's structure but for three fields of the task, which are relocated when
 * the programs are loaded (CO-RE).
 */
#include <linux/bpf.h>

#include "abi.h"

#define SECTION(name) __attribute__((section(name), used))
#define FIELD(name, number) int (*name)[number]

static void *(*lookup)(void *map, const void *key) = (void *)BPF_FUNC_map_lookup_elem;
static long (*update)(void *map, const void *key, const void *value, __u64 flags) =
	(void *)BPF_FUNC_map_update_elem;
static __u64 (*now)(void) = (void *)BPF_FUNC_ktime_get_ns;
static __u64 (*ids)(void) = (void *)BPF_FUNC_get_current_pid_tgid;
static __u32 (*cpu)(void) = (void *)BPF_FUNC_get_smp_processor_id;
static __u32 (*random)(void) = (void *)BPF_FUNC_get_prandom_u32;
static long (*is_under_cgroup)(void *map, __u32 index) = (void *)BPF_FUNC_current_task_under_cgroup;

struct task_struct {
	int pid;
	int tgid;
	unsigned long nvcsw;
	unsigned long nivcsw;
} __attribute__((preserve_access_index));

static struct task_struct *(*task)(void) = (void *)BPF_FUNC_get_current_task_btf;

/* Reason of tlb:tlb_flush (enum tlb_flush_reason): the flush interrupts other CPUs. */
#define REMOTE_SEND_IPI 4
/* What handle_mm_fault() returns (enum vm_fault_reason). */
#define FAULT_MAJOR 0x4
#define FAULT_RETRY 0x400

const volatile __u32 mode = MODE_MACHINE;
/* One of this many faults is timed, at random. */
const volatile __u32 fault_sampling = 1;

/* Sampled faults that have not ended. */
static __u64 faults_under_way;

/* What a thread is in the middle of. */
struct thread {
	__u64 begun[EVENTS];
	/* Time in reclaim and compaction during the present fault. */
	__u64 inside;
	/* Context switches of the thread when the fault began. */
	__u64 switches;
};

struct {
	FIELD(type, BPF_MAP_TYPE_LRU_HASH);
	FIELD(max_entries, 16384);
	__u32 *key;
	struct thread *value;
} threads SECTION(".maps");

struct {
	FIELD(type, BPF_MAP_TYPE_HASH);
	FIELD(max_entries, 16384);
	struct key *key;
	struct totals *value;
} totals SECTION(".maps");

struct {
	FIELD(type, BPF_MAP_TYPE_HASH);
	FIELD(max_entries, 32768);
	__u32 *key;
	__u32 *value;
} followed SECTION(".maps");

struct {
	FIELD(type, BPF_MAP_TYPE_CGROUP_ARRAY);
	FIELD(max_entries, 1);
	__u32 *key;
	__u32 *value;
} cgroup SECTION(".maps");

/* Updates for which there was no room. */
struct {
	FIELD(type, BPF_MAP_TYPE_ARRAY);
	FIELD(max_entries, 1);
	__u32 *key;
	__u64 *value;
} lost SECTION(".maps");

static __always_inline void lose(void)
{
	__u32 first = 0;
	__u64 *number = lookup(&lost, &first);

	if (number)
		__sync_fetch_and_add(number, 1);
}

static __always_inline __u32 process(void)
{
	return ids() >> 32;
}

static __always_inline int is_wanted(void)
{
	__u32 id;
	__u32 *state;

	switch (mode) {
	case MODE_FOLLOWED:
		id = process();
		state = lookup(&followed, &id);
		return state && *state == FOLLOWED_ALL;
	case MODE_CGROUP:
		return is_under_cgroup(&cgroup, 0) == 1;
	default:
		return 1;
	}
}

static __always_inline void add(enum event event, __u64 ns)
{
	struct key key = {
		.process = mode == MODE_PROCESSES ? process() : 0,
		.cpu = cpu(),
	};
	static const struct totals none;
	struct totals *sums = lookup(&totals, &key);

	if (!sums) {
		update(&totals, &key, &none, BPF_NOEXIST);
		sums = lookup(&totals, &key);
	}
	if (!sums) {
		lose();
		return;
	}
	__sync_fetch_and_add(&sums->sums[event].count, 1);
	if (ns)
		__sync_fetch_and_add(&sums->sums[event].ns, ns);
	if (event == EVENT_FAULT) {
		ns >>= SQUARED_SHIFT;
		__sync_fetch_and_add(&sums->fault_squares, ns * ns);
	}
}

static __always_inline struct thread *begin(enum event event)
{
	static const struct thread none;
	__u32 id = ids();
	struct thread *thread = lookup(&threads, &id);

	if (!thread) {
		update(&threads, &id, &none, BPF_NOEXIST);
		thread = lookup(&threads, &id);
	}
	if (thread)
		thread->begun[event] = now();
	else
		lose();
	return thread;
}

/* Returns the time since begin(), or 0 if that was not seen. */
static __always_inline __u64 end(struct thread *thread, enum event event)
{
	__u64 begun = thread->begun[event];

	thread->begun[event] = 0;
	return begun ? now() - begun : 0;
}

static __always_inline __u64 switches(void)
{
	struct task_struct *current = task();

	return current->nvcsw + current->nivcsw;
}

SECTION("fentry/handle_mm_fault")
int fault_begin(__u64 *ctx)
{
	struct thread *thread;

	if (fault_sampling > 1 && random() % fault_sampling)
		return 0;
	if (!is_wanted())
		return 0;
	thread = begin(EVENT_FAULT);
	if (!thread)
		return 0;
	thread->inside = 0;
	thread->switches = switches();
	__sync_fetch_and_add(&faults_under_way, 1);
	return 0;
}

/* The arguments are the mapping, the address, flags and registers; the result follows. */
SECTION("fexit/handle_mm_fault")
int fault_end(__u64 *ctx)
{
	__u32 id, result = ctx[4];
	struct thread *thread;
	__u64 ns;

	if (!faults_under_way)
		return 0;
	id = ids();
	thread = lookup(&threads, &id);
	if (!thread)
		return 0;
	ns = end(thread, EVENT_FAULT);
	if (!ns)
		return 0;
	__sync_fetch_and_add(&faults_under_way, -1);
	ns = ns > thread->inside ? ns - thread->inside : 0;
	/* A major fault waits for a disk; one that is tried again comes back. */
	if (!(result & (FAULT_MAJOR | FAULT_RETRY)))
		add(thread->switches == switches() ? EVENT_FAULT : EVENT_FAULT_SLEPT, ns);
	return 0;
}

static __always_inline int stall_begin(enum event event)
{
	if (is_wanted())
		begin(event);
	return 0;
}

static __always_inline int stall_end(enum event event)
{
	__u32 id = ids();
	struct thread *thread = lookup(&threads, &id);
	__u64 ns;

	if (!thread)
		return 0;
	ns = end(thread, event);
	if (!ns)
		return 0;
	thread->inside += ns;
	add(event, ns);
	return 0;
}

SECTION("tp_btf/mm_vmscan_direct_reclaim_begin")
int reclaim_begin(__u64 *ctx)
{
	return stall_begin(EVENT_RECLAIM);
}

SECTION("tp_btf/mm_vmscan_direct_reclaim_end")
int reclaim_end(__u64 *ctx)
{
	return stall_end(EVENT_RECLAIM);
}

SECTION("tp_btf/mm_vmscan_memcg_reclaim_begin")
int limit_begin(__u64 *ctx)
{
	return stall_begin(EVENT_RECLAIM);
}

SECTION("tp_btf/mm_vmscan_memcg_reclaim_end")
int limit_end(__u64 *ctx)
{
	return stall_end(EVENT_RECLAIM);
}

SECTION("fentry/try_to_compact_pages")
int compaction_begin(__u64 *ctx)
{
	return stall_begin(EVENT_COMPACTION);
}

SECTION("fexit/try_to_compact_pages")
int compaction_end(__u64 *ctx)
{
	return stall_end(EVENT_COMPACTION);
}

/* On x86, what interrupts other CPUs. The tracepoint costs three times as much: each CPU that flushes passes it. */
SECTION("fentry/native_flush_tlb_multi")
int shootdown_sent(__u64 *ctx)
{
	if (is_wanted())
		add(EVENT_SHOOTDOWN, 0);
	return 0;
}

SECTION("tp_btf/tlb_flush")
int shootdown(__u64 *ctx)
{
	if ((__u32)ctx[0] == REMOTE_SEND_IPI && is_wanted())
		add(EVENT_SHOOTDOWN, 0);
	return 0;
}

/* A thread of a followed process needs no entry: it has the id of its process. */
SECTION("tp_btf/sched_process_fork")
int forked(__u64 *ctx)
{
	struct task_struct *child = (void *)ctx[1];
	__u32 state = FOLLOWED_ALL, parent = process(), id = child->tgid;

	if (child->pid == child->tgid && lookup(&followed, &parent) &&
	    update(&followed, &id, &state, BPF_ANY))
		lose();
	return 0;
}

char licence[] SECTION("license") = "Dual MIT/GPL";
