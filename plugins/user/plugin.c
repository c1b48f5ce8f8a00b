/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The simulator: gets callbacks from QEMU's user emulation for each memory access of the
 * guest and for each system call.
 *
 * QEMU 7.2 cannot switch callbacks on and off without translating the whole program
 * again, which costs more than it saves at the window lengths needed for sampling, so the
 * callback is always installed and does nothing while idle. To reduce the number of
 * callbacks, one callback represents the accesses of a block that use the same registers
 * within 64 bytes of each other (`weight`); with sample=1 every access has its own.
 */
#define _GNU_SOURCE
#include "core.h"
#include "interface.h"
#include "trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCK_INSNS 512
/*
 * Accesses closer than this are equivalent in the models; on the stack, where they hit.
 */
#define NEAR 64
#define NEAR_ON_STACK 256

static struct options options;
static struct flow *flow;
static struct core *cores[CORES];
/* A child of fork: it shares the recording, and must not write to it. */
static bool stopped;
static bool have_base;

static struct core *core_start(unsigned int vcpu)
{
	if (stopped || vcpu >= CORES)
		return NULL;
	cores[vcpu] = core_new(vcpu);
	if (cores[vcpu])
		__atomic_add_fetch(&recording->threads, 1, __ATOMIC_RELAXED);
	return cores[vcpu];
}

static struct core *core_of(unsigned int vcpu)
{
	struct core *core = vcpu < CORES ? cores[vcpu] : NULL;

	return core ? core : core_start(vcpu);
}

static __attribute__((noinline)) void model_access(unsigned int vcpu,
						   qemu_plugin_meminfo_t info,
						   uint64_t address, void *data)
{
	struct core *core = core_of(vcpu);

	if (!core)
		return;
	if (core->phase == PHASE_IDLE)
		core_next_phase(core);
	core_access(core, address, 1u << qemu_plugin_mem_size_shift(info), data);
	if (--core->left <= 0)
		core_next_phase(core);
}

static void on_access(unsigned int vcpu, qemu_plugin_meminfo_t info, uint64_t address,
		      void *data)
{
	struct countdown *idle = &core_idle[vcpu % CORES];

	if (idle->left > 0)
		idle->left--;
	else
		model_access(vcpu, info, address, data);
}

void on_exit_vcpu(unsigned int vcpu)
{
	struct core *core = vcpu < CORES ? cores[vcpu] : NULL;

	if (!core || stopped)
		return;
	cores[vcpu] = NULL;
	core_publish(core);
	core_free(core);
}

/* --- translation --- */

/*
 * Whether two operands are certainly close, if their registers did not change in between.
 */
static bool are_near(const struct flow_op *a, const struct flow_op *b)
{
	int64_t apart = (int64_t)a->displacement - b->displacement;

	int64_t near = a->base == REG_RSP ? NEAR_ON_STACK : NEAR;

	return a->memory && a->base == b->base && a->index == b->index &&
	       a->scale == b->scale && a->base != REG_NONE && apart > -near && apart < near;
}

static bool writes(const struct flow_op *op, uint8_t reg)
{
	return reg < 16 && (op->written >> reg & 1);
}

/*
 * Returns the earlier instruction of the block with the callback that represents this
 * one; `at` if none.
 */
static size_t leader(const struct flow_site *sites, size_t at)
{
	const struct flow_op *op = &sites[at].op;

	if (!op->memory || op->base == REG_NONE)
		return at;
	for (size_t i = at; i-- > 0;) {
		if (writes(&sites[i].op, op->base) || writes(&sites[i].op, op->index))
			return at;
		if (sites[i].weight && sites[i].weight < UINT8_MAX &&
		    are_near(&sites[i].op, op))
			return i;
	}
	return at;
}

/* Assigns each access to the first one close to it. */
static void fold(struct flow_site *sites, size_t count)
{
	for (size_t i = 0; i < count; i++)
		sites[i].weight = 1;
	for (size_t i = 1; i < count; i++) {
		size_t first = leader(sites, i);

		if (first != i) {
			sites[i].weight = 0;
			sites[first].weight++;
		}
	}
}

static void note_base(const struct qemu_plugin_tb *block)
{
	void *host = qemu_plugin_insn_haddr(qemu_plugin_tb_get_insn(block, 0));

	if (!host)
		return;
	recording->guest_base = (uint64_t)host - qemu_plugin_tb_vaddr(block);
	have_base = true;
}

void on_block(struct qemu_plugin_tb *block)
{
	uint8_t bytes[BLOCK_INSNS][LONGEST_INSN];
	struct flow_code code[BLOCK_INSNS];
	size_t count = qemu_plugin_tb_n_insns(block);
	struct flow_site *sites;

	if (stopped || count > BLOCK_INSNS)
		return;
	if (!have_base && count)
		note_base(block);
	for (size_t i = 0; i < count; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
		size_t size = qemu_plugin_insn_size(insn);

		code[i].bytes = interface_code(insn, bytes[i]);
		code[i].size = size < LONGEST_INSN ? size : LONGEST_INSN;
	}
	sites = flow_block(flow, qemu_plugin_tb_vaddr(block), code, count);
	if (!sites)
		return;
	if (options.sample < 1)
		fold(sites, count);
	for (size_t i = 0; i < count; i++)
		if (sites[i].weight)
			qemu_plugin_register_vcpu_mem_cb(
				qemu_plugin_tb_get_insn(block, i), on_access,
				QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, &sites[i]);
}

/* --- system calls --- */

static void note_exec(uint64_t path)
{
	const char *text = (const char *)(path + recording->guest_base);

	recording->flags |= RECORDING_EXECED;
	__atomic_add_fetch(&recording->execs, 1, __ATOMIC_RELAXED);
	strncpy(recording->exec_path, text, RECORDING_PATH - 1);
}

void on_syscall(unsigned int vcpu, int64_t number, const uint64_t arguments[6])
{
	struct core *core = core_of(vcpu);

	if (number == SYS_execve && stopped)
		__atomic_add_fetch(&recording->execs, 1, __ATOMIC_RELAXED);
	if (!core)
		return;
	if (number == SYS_clone || number == SYS_clone3)
		core_share();
	core->call.number = number;
	memcpy(core->call.a, arguments, sizeof(core->call.a));
	memory_before(&core->call);
	if (number == SYS_execve)
		note_exec(arguments[0]);
}

void on_syscall_return(unsigned int vcpu, int64_t number, int64_t result)
{
	struct core *core = core_of(vcpu);

	if (!core || core->call.number != number)
		return;
	/* execve returned: it failed, and the program continues. */
	if (number == SYS_execve)
		recording->flags &= ~RECORDING_EXECED;
	memory_after(&core->call, result);
}

/* --- start and end --- */

static void in_child(void)
{
	stopped = true;
	trace_on = false;
	for (unsigned int i = 0; i < CORES; i++) {
		if (cores[i])
			core_idle[i].left = INT64_MAX;
		cores[i] = NULL;
	}
	__atomic_add_fetch(&recording->forks, 1, __ATOMIC_RELAXED);
}

void on_end(void)
{
	if (stopped)
		return;
	for (unsigned int i = 0; i < CORES; i++)
		if (cores[i])
			core_publish(cores[i]);
	core_finish();
	memory_scan_all();
	recording->flags |= RECORDING_COMPLETE;
}

static int refuse(const char *what, const char *detail)
{
	fprintf(stderr, "tollfree simulator: %s: %s\n", what, detail);
	return -1;
}

/* QEMU loads this plugin: say so, with the version of the recording, and run nothing. */
static _Noreturn void answer_check(void)
{
	puts(RECORDING_MAGIC);
	_exit(fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
					   int argc, char **argv)
{
	const char *bad;

	if (info->system_emulation || strcmp(info->target_name, "x86_64"))
		return refuse(info->target_name, "not an x86-64 user emulation");
	if (!options_parse(&options, argc, argv, &bad))
		return refuse(bad, "not understood");
	if (options.check)
		answer_check();
	flow = flow_new();
	if (!recording_open(options.out))
		return refuse(options.out, strerror(errno));
	if (options.trace && !trace_open(options.trace, options.trace_max))
		return refuse(options.trace, strerror(errno));
	if (!flow || !core_init(&options))
		return refuse("TLB", "invalid geometry, or out of memory");
	/* The host's huge pages would make untouched pages look touched. */
	if (options.thp == THP_ALWAYS)
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	memory_init(options.thp);
	pthread_atfork(NULL, NULL, in_child);
	interface_register(id, info);
	return 0;
}
