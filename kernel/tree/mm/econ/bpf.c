// SPDX-License-Identifier: GPL-2.0-only
/*
 * Decisions by a BPF program (struct_ops). It is asked after the kernel's own model, gets
 * the action and the estimate, and may leave the decision to the kernel.
 */

#define pr_fmt(fmt) "econ: " fmt

#include <linux/bpf.h>
#include <linux/bpf_verifier.h>
#include <linux/btf.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "internal.h"

/* NULL if no program decides. */
static struct econ_ops __rcu *econ_ops_now;

/* Decisions of the program: refused, and approved. */
atomic64_t econ_by_program[2];

/**
 * econ_ask_program - let a BPF program decide
 * @action: the action
 * @it: estimate by the kernel's model
 *
 * Context: any.
 * Return: its verdict; ECON_AS_ESTIMATED if there is none.
 */
enum econ_verdict econ_ask_program(const struct econ_action *action,
				   struct econ_estimate it)
{
	struct econ_ops *ops;
	int verdict;

	guard(rcu)();
	ops = rcu_dereference(econ_ops_now);
	if (!ops)
		return ECON_AS_ESTIMATED;
	verdict = ops->decide(action, it.cost, it.benefit);
	if (verdict != ECON_REFUSE && verdict != ECON_APPROVE)
		return ECON_AS_ESTIMATED;
	atomic64_inc(&econ_by_program[verdict]);
	return verdict;
}

static int econ_ops_init(struct btf *btf)
{
	return 0;
}

/* There are no members but functions. */
static int econ_ops_init_member(const struct btf_type *type, const struct btf_member *member,
				void *kdata, const void *udata)
{
	return 0;
}

static int econ_ops_check_member(const struct btf_type *type, const struct btf_member *member,
				 const struct bpf_prog *prog)
{
	/* Decisions are made under spinlocks and RCU. */
	return prog->sleepable ? -EINVAL : 0;
}

static int econ_ops_validate(void *kdata)
{
	const struct econ_ops *ops = kdata;

	return ops->decide ? 0 : -EINVAL;
}

static int econ_ops_register(void *kdata, struct bpf_link *link)
{
	return cmpxchg((struct econ_ops __force **)&econ_ops_now, NULL, kdata) ? -EBUSY : 0;
}

/* BPF waits for readers before it frees the program. */
static void econ_ops_unregister(void *kdata, struct bpf_link *link)
{
	cmpxchg((struct econ_ops __force **)&econ_ops_now, kdata, NULL);
}

static bool econ_ops_may_access(int offset, int size, enum bpf_access_type type,
				const struct bpf_prog *prog, struct bpf_insn_access_aux *info)
{
	return bpf_tracing_btf_ctx_access(offset, size, type, prog, info);
}

static const struct bpf_verifier_ops econ_ops_verifier = {
	.get_func_proto = bpf_base_func_proto,
	.is_valid_access = econ_ops_may_access,
};

static int econ_ops_decide(const struct econ_action *action, u64 cost, u64 benefit)
{
	return ECON_AS_ESTIMATED;
}

static struct econ_ops econ_ops_stubs = {
	.decide = econ_ops_decide,
};

static struct bpf_struct_ops econ_struct_ops = {
	.verifier_ops = &econ_ops_verifier,
	.init = econ_ops_init,
	.check_member = econ_ops_check_member,
	.init_member = econ_ops_init_member,
	.validate = econ_ops_validate,
	.reg = econ_ops_register,
	.unreg = econ_ops_unregister,
	.cfi_stubs = &econ_ops_stubs,
	.name = "econ_ops",
	.owner = THIS_MODULE,
};

static int __init econ_ops_start(void)
{
	int err = register_bpf_struct_ops(&econ_struct_ops, econ_ops);

	if (err)
		pr_err("no BPF program can decide: %d\n", err);
	return err;
}
late_initcall(econ_ops_start);
