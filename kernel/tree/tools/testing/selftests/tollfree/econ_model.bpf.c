// SPDX-License-Identifier: GPL-2.0-only
/*
 * Example of a model of econ in a BPF program: a region is made huge only if at least half
 * of it is touched, whatever that saves. All other decisions are the kernel's. Needs the
 * headers of libbpf; on x86-64 Debian:
 *
 *	clang -O2 -g -target bpf -I/usr/include/x86_64-linux-gnu \
 *		-c econ_model.bpf.c -o econ_model.o
 *	bpftool struct_ops register econ_model.o
 */

#include <linux/types.h>
#include <bpf/bpf_helpers.h>

/* Of mm/econ/model.h: the kernel's types give the offsets when the program is loaded. */
enum econ_kind { ECON_HUGE };

struct econ_action {
	enum econ_kind kind;
	unsigned int touched;
} __attribute__((preserve_access_index));

/* Of mm/econ/internal.h. */
enum { ECON_REFUSE, ECON_APPROVE, ECON_AS_ESTIMATED };

struct econ_ops {
	int (*decide)(const struct econ_action *action, __u64 cost, __u64 benefit);
};

SEC("struct_ops/decide")
int decide(__u64 *arguments)
{
	const struct econ_action *action = (void *)arguments[0];

	return action->kind == ECON_HUGE && action->touched < 256 ? ECON_REFUSE :
								    ECON_AS_ESTIMATED;
}

SEC(".struct_ops")
struct econ_ops half_used = {
	.decide = (void *)decide,
};

SEC("license")
char _license[] = "GPL";
