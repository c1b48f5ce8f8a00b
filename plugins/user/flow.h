/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which memory accesses of x86-64 code chase pointers, told by data flow
 * through general registers, without running anything.
 *
 * A value's depth counts the loads that it came through: 0 for constants and
 * what is computed from them, one more for each load whose address has that
 * depth. An access whose address has depth 2 or more, as each pointer chase
 * has once round its loop, waits for an earlier load; with depth 0 or 1
 * (a sweep, or a gather a[idx[i]]) it can overlap with its neighbours. The
 * address may be unknown: then the access is too.
 *
 * The analysis is per translation block, and joins blocks along direct jumps
 * and past calls: a block's depths on entry are the largest that its known
 * predecessors end with. Values that pass through memory other than by a load
 * seen here (spilled registers, return values) are unknown.
 */
#ifndef TOLL_FLOW_H
#define TOLL_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum flow_class {
	FLOW_UNKNOWN,
	FLOW_INDEPENDENT,
	FLOW_DEPENDENT,
};

/* Depths as they are kept: unknown is the least, so that a join is a maximum. */
enum { DEPTH_UNKNOWN, DEPTH_0, DEPTH_1, DEPTH_2, DEPTH_MANY };

/* Register numbers as the instruction set has them; 16 is the instruction pointer. */
enum { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RIP = 16, REG_NONE = 17 };

/* What one instruction does, as far as this analysis cares. */
struct flow_op {
	/* The address of its memory operand; REG_NONE where there is no such part. */
	uint8_t base, index, scale;
	bool memory;
	/* With the instruction pointer as base: the low bits of the address itself. */
	int32_t displacement;
	/* Registers (bit per number) that get a new value. */
	uint16_t written;
	/* Registers that the value comes from. */
	uint16_t sources;
	/* The value comes from memory (too). */
	bool loads;
	/* The value is not known. */
	bool unknown;
	/* The value is its source, stepped by a constant. */
	bool steps;
};

enum flow_end { FLOW_NEXT, FLOW_JUMP, FLOW_BRANCH, FLOW_CALL, FLOW_GONE };

/* How an instruction goes on, if it ends a block. */
struct flow_exit {
	enum flow_end end;
	uint64_t target;
};

/* Decodes one instruction. */
void flow_decode(const uint8_t *bytes, size_t size, uint64_t address,
		 struct flow_op *op, struct flow_exit *exit);

/*
 * One instruction of a block: what the simulator's callback is given. The
 * class changes as more of the program becomes known.
 */
struct flow_site {
	struct flow_op op;
	uint8_t class;
	/* Accesses that the callback stands for (see plugin.c). */
	uint8_t weight;
};

struct flow;

struct flow *flow_new(void);

struct flow_code {
	const uint8_t *bytes;
	size_t size;
};

/*
 * Takes a block in; returns a site per instruction, which stay valid for
 * ever. NULL if memory is short. A block that is known already keeps its sites
 * if its code is the same. Callers see to it that one thread is in here.
 */
struct flow_site *flow_block(struct flow *flow, uint64_t address,
			     const struct flow_code *code, size_t count);

#endif
