/* SPDX-License-Identifier: GPL-2.0-only */
/* Data flow analysis over the blocks seen so far: see flow.h. */
#include "flow.h"

#include <stdlib.h>
#include <string.h>

#define REGISTERS 16
/* Caller-saved registers: rax rcx rdx rsi rdi r8-r11. */
#define CLOBBERED 0x0fc7u

struct block {
	uint64_t address;
	/* Depths of the registers at entry. */
	uint8_t entry[REGISTERS];
	/* NULL: known only as a successor. */
	struct flow_site *sites;
	size_t count;
	uint64_t code_hash;
	/* Address of the successor; 0: unknown. */
	uint64_t successor[2];
	bool calls;
	bool queued;
	struct block *next_queued;
};

struct flow {
	/* Open addressing, keyed by address; `buckets` is a power of two. */
	struct block **table;
	size_t buckets, used;
	struct block *queue;
};

struct flow *flow_new(void)
{
	struct flow *flow = calloc(1, sizeof(*flow));

	if (!flow)
		return NULL;
	flow->buckets = 1024;
	flow->table = calloc(flow->buckets, sizeof(*flow->table));
	if (!flow->table) {
		free(flow);
		return NULL;
	}
	return flow;
}

static size_t slot(const struct flow *flow, uint64_t address)
{
	size_t at = (address * 0x9e3779b97f4a7c15ull >> 20) & (flow->buckets - 1);

	while (flow->table[at] && flow->table[at]->address != address)
		at = (at + 1) & (flow->buckets - 1);
	return at;
}

static bool grow(struct flow *flow)
{
	struct flow larger = { .buckets = flow->buckets * 2 };

	larger.table = calloc(larger.buckets, sizeof(*larger.table));
	if (!larger.table)
		return false;
	for (size_t i = 0; i < flow->buckets; i++)
		if (flow->table[i])
			larger.table[slot(&larger, flow->table[i]->address)] =
				flow->table[i];
	free(flow->table);
	flow->table = larger.table;
	flow->buckets = larger.buckets;
	return true;
}

/* Returns the block at an address and creates it if necessary. */
static struct block *block_at(struct flow *flow, uint64_t address)
{
	size_t at = slot(flow, address);
	struct block *block = flow->table[at];

	if (block)
		return block;
	if (flow->used * 2 >= flow->buckets) {
		if (!grow(flow))
			return NULL;
		at = slot(flow, address);
	}
	block = calloc(1, sizeof(*block));
	if (!block)
		return NULL;
	block->address = address;
	flow->table[at] = block;
	flow->used++;
	return block;
}

static void enqueue(struct flow *flow, struct block *block)
{
	if (block->queued || !block->sites)
		return;
	block->queued = true;
	block->next_queued = flow->queue;
	flow->queue = block;
}

/*
 * Whether an operand is on the stack or relative to the code: such an operand is never a
 * chased pointer. Operands below rbp are local variables, if it is a frame pointer.
 */
static bool fixed(const struct flow_op *op)
{
	return op->base == REG_RSP || op->base == REG_RIP ||
	       (op->base == REG_RBP && op->index == REG_NONE && op->displacement < 0);
}

static uint8_t depth_of(const uint8_t *regs, uint8_t reg)
{
	if (reg == REG_RSP || reg == REG_RIP)
		return DEPTH_0;
	return reg < REGISTERS ? regs[reg] : DEPTH_UNKNOWN;
}

static uint8_t larger(uint8_t a, uint8_t b)
{
	return a > b ? a : b;
}

static uint8_t address_depth(const struct flow_op *op, const uint8_t *regs)
{
	return larger(depth_of(regs, op->base), depth_of(regs, op->index));
}

static uint8_t class_of(uint8_t depth)
{
	if (depth == DEPTH_UNKNOWN)
		return FLOW_UNKNOWN;
	return depth >= DEPTH_2 ? FLOW_DEPENDENT : FLOW_INDEPENDENT;
}

/* Returns the depth of the value that an instruction computes. */
static uint8_t value_depth(const struct flow_op *op, const uint8_t *regs)
{
	uint8_t depth = DEPTH_UNKNOWN;

	if (op->unknown)
		return DEPTH_UNKNOWN;
	if (!op->sources && !op->loads)
		return DEPTH_0;
	for (uint8_t reg = 0; reg < REGISTERS; reg++)
		if (op->sources >> reg & 1)
			depth = larger(depth, depth_of(regs, reg));
	if (op->loads && !fixed(op)) {
		uint8_t loaded = larger(address_depth(op, regs), DEPTH_0) + 1;

		depth = larger(depth, loaded > DEPTH_MANY ? DEPTH_MANY : loaded);
	}
	return op->steps ? larger(depth, DEPTH_0) : depth;
}

static void step(struct flow_site *site, uint8_t *regs)
{
	const struct flow_op *op = &site->op;
	uint8_t depth = value_depth(op, regs);

	if (op->memory)
		site->class = class_of(address_depth(op, regs));
	for (uint8_t reg = 0; reg < REGISTERS; reg++)
		if (op->written >> reg & 1)
			regs[reg] = depth;
}

/* Merges the depths at a block's end into one of its successors. */
static void join(struct flow *flow, uint64_t address, const uint8_t *regs, uint16_t without)
{
	struct block *block = block_at(flow, address);
	bool changed = false;

	if (!block)
		return;
	for (uint8_t reg = 0; reg < REGISTERS; reg++) {
		uint8_t depth = without >> reg & 1 ? DEPTH_UNKNOWN : regs[reg];

		if (depth > block->entry[reg]) {
			block->entry[reg] = depth;
			changed = true;
		}
	}
	if (changed)
		enqueue(flow, block);
}

/*
 * Iterates over blocks until no entry changes. Depths only grow, so the iteration
 * terminates.
 */
static void settle(struct flow *flow)
{
	while (flow->queue) {
		struct block *block = flow->queue;
		uint8_t regs[REGISTERS];

		flow->queue = block->next_queued;
		block->queued = false;
		memcpy(regs, block->entry, sizeof(regs));
		for (size_t i = 0; i < block->count; i++)
			step(&block->sites[i], regs);
		for (int i = 0; i < 2; i++)
			if (block->successor[i])
				join(flow, block->successor[i], regs,
				     block->calls ? CLOBBERED : 0);
	}
}

static uint64_t hash_code(const struct flow_code *code, size_t count)
{
	uint64_t hash = 0xcbf29ce484222325ull + count;

	for (size_t i = 0; i < count; i++)
		for (size_t b = 0; b < code[i].size; b++)
			hash = (hash ^ code[i].bytes[b]) * 0x100000001b3ull;
	return hash;
}

/* Returns the successor of a block after its last instruction, which ends at `after`. */
static void set_successors(struct block *block, struct flow_exit exit, uint64_t after)
{
	block->calls = exit.end == FLOW_CALL;
	block->successor[0] = block->successor[1] = 0;
	if (exit.end == FLOW_JUMP || exit.end == FLOW_BRANCH)
		block->successor[0] = exit.target;
	if (exit.end == FLOW_NEXT || exit.end == FLOW_BRANCH || exit.end == FLOW_CALL)
		block->successor[1] = after;
}

struct flow_site *flow_block(struct flow *flow, uint64_t address,
			     const struct flow_code *code, size_t count)
{
	struct block *block = block_at(flow, address);
	uint64_t hash = hash_code(code, count), at = address;
	struct flow_exit exit = { .end = FLOW_GONE };
	struct flow_site *sites;

	if (!block)
		return NULL;
	if (block->sites && block->code_hash == hash)
		return block->sites;
	sites = calloc(count ? count : 1, sizeof(*sites));
	if (!sites)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		flow_decode(code[i].bytes, code[i].size, at, &sites[i].op, &exit);
		sites[i].weight = 1;
		at += code[i].size;
	}
	/* Sites of old code are never freed: its translations may still run. */
	block->sites = sites;
	block->count = count;
	block->code_hash = hash;
	set_successors(block, exit, at);
	enqueue(flow, block);
	settle(flow);
	return sites;
}
