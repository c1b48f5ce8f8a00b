/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Determines which memory accesses of x86-64 code chase pointers, by static data flow
 * through general registers.
 *
 * A value's depth is the number of loads that it came through: 0 for constants and values
 * computed from them, and one more for each load with an address of that depth. An access
 * with an address of depth 2 or more, which each pointer chase reaches after one
 * iteration of its loop, waits for an earlier load; with depth 0 or 1 (a sweep, or a
 * gather a[idx[i]]) it can overlap with its neighbours. If the address is unknown, the
 * access is too.
 *
 * The analysis is per translation block, and joins blocks along direct jumps and past
 * calls: a block's depths at entry are the maxima over its known predecessors. Values
 * that pass through memory other than by a load seen here (spilled registers, return
 * values) are unknown.
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

/* Encoding of depths: unknown is the smallest, so that a join is a maximum. */
enum { DEPTH_UNKNOWN, DEPTH_0, DEPTH_1, DEPTH_2, DEPTH_MANY };

/* Register numbers as in the instruction set; 16 is the instruction pointer. */
enum { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RIP = 16, REG_NONE = 17 };

/* Effect of one instruction, as far as the analysis needs it. */
struct flow_op {
	/* Address of its memory operand; REG_NONE for an absent part. */
	uint8_t base, index, scale;
	bool memory;
	/* With the instruction pointer as base: the low bits of the address itself. */
	int32_t displacement;
	/* Registers (bit per number) that are written. */
	uint16_t written;
	/* Registers that the value is computed from. */
	uint16_t sources;
	/* Whether the value comes from memory (too). */
	bool loads;
	/* Whether the value is unknown. */
	bool unknown;
	/* Whether the value is its source plus a constant. */
	bool steps;
};

enum flow_end { FLOW_NEXT, FLOW_JUMP, FLOW_BRANCH, FLOW_CALL, FLOW_GONE };

/* Successor of an instruction, if it ends a block. */
struct flow_exit {
	enum flow_end end;
	uint64_t target;
};

/* Decodes one instruction. */
void flow_decode(const uint8_t *bytes, size_t size, uint64_t address,
		 struct flow_op *op, struct flow_exit *exit);

/*
 * One instruction of a block, passed to the simulator's callback. The class changes as
 * more of the program becomes known.
 */
struct flow_site {
	struct flow_op op;
	uint8_t class;
	/* Number of accesses that the callback represents (see plugin.c). */
	uint8_t weight;
};

struct flow;

struct flow *flow_new(void);

struct flow_code {
	const uint8_t *bytes;
	size_t size;
};

/*
 * Adds a block; returns a site per instruction, which stay valid permanently. NULL if
 * memory is short. An existing block with the same code keeps its sites. Callers must
 * serialise calls.
 */
struct flow_site *flow_block(struct flow *flow, uint64_t address,
			     const struct flow_code *code, size_t count);

#endif
