/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests of the data flow analysis: machine code with the expected classes of its
 * accesses.
 */
#include "../flow.h"

#include "check.h"

#include <string.h>

struct code {
	const char *bytes;
	size_t size;
};
#define I(text) { text, sizeof(text) - 1 }

static struct flow_site *block(struct flow *flow, uint64_t address, const struct code *code,
			       size_t count)
{
	struct flow_code list[16];

	for (size_t i = 0; i < count; i++) {
		list[i].bytes = (const uint8_t *)code[i].bytes;
		list[i].size = code[i].size;
	}
	return flow_block(flow, address, list, count);
}
#define BLOCK(flow, address, code) block(flow, address, code, sizeof(code) / sizeof(code[0]))

static void chase_in_one_block(void)
{
	/* loop: mov rax,[rax]; dec rcx; jne loop */
	static const struct code code[] = { I("\x48\x8b\x00"), I("\x48\xff\xc9"), I("\x75\xf8") };
	struct flow_site *sites = BLOCK(flow_new(), 0x1000, code);

	EXPECT("chase", sites[0].class, FLOW_DEPENDENT);
}

/* rbp may be any pointer: loop: mov rbp,[rbp+0]; jmp loop. Locals are below it. */
static void frame_pointer(void)
{
	static const struct code chase[] = { I("\x48\x8b\x6d\x00"), I("\xeb\xfa") };
	/* mov rax,[rbp-8]; mov rax,[rax]; mov [rbp-8],rax; jmp back */
	static const struct code local[] = { I("\x48\x8b\x45\xf8"), I("\x48\x8b\x00"),
					     I("\x48\x89\x45\xf8"), I("\xeb\xf3") };

	EXPECT("chase", BLOCK(flow_new(), 0x1000, chase)[0].class, FLOW_DEPENDENT);
	EXPECT("through a local", BLOCK(flow_new(), 0x1000, local)[1].class, FLOW_UNKNOWN);
}

static void sweep(void)
{
	/* loop: mov rdx,[rdi]; add rdi,8; dec rcx; jne loop */
	static const struct code code[] = { I("\x48\x8b\x17"), I("\x48\x83\xc7\x08"),
					    I("\x48\xff\xc9"), I("\x75\xf4") };
	struct flow_site *sites = BLOCK(flow_new(), 0x1000, code);

	EXPECT("sweep", sites[0].class, FLOW_INDEPENDENT);
}

static void gather(void)
{
	/* loop: mov eax,[rdi+rcx*4]; mov rax,[rsi+rax*8]; inc rcx; cmp rcx,rdx; jne loop */
	static const struct code code[] = { I("\x8b\x04\x8f"), I("\x48\x8b\x04\xc6"),
					    I("\x48\xff\xc1"), I("\x48\x39\xd1"), I("\x75\xf1") };
	struct flow_site *sites = BLOCK(flow_new(), 0x1000, code);

	EXPECT("index", sites[0].class, FLOW_INDEPENDENT);
	EXPECT("gathered", sites[1].class, FLOW_INDEPENDENT);
}

/* A search tree: the loop is three blocks, seen one after the other. */
static void chase_over_blocks(void)
{
	/* 1000: cmp rdi,[rax+8]; jl 1010 */
	static const struct code head[] = { I("\x48\x3b\x78\x08"), I("\x7c\x0a") };
	/* 1006: mov rax,[rax+16]; jmp 1014 */
	static const struct code right[] = { I("\x48\x8b\x40\x10"), I("\xeb\x08") };
	/* 1010: mov rax,[rax+24] */
	static const struct code left[] = { I("\x48\x8b\x40\x18") };
	/* 1014: test rax,rax; jne 1000 */
	static const struct code tail[] = { I("\x48\x85\xc0"), I("\x75\xe7") };
	struct flow *flow = flow_new();
	struct flow_site *sites = BLOCK(flow, 0x1000, head);

	EXPECT("unknown so far", sites[0].class, FLOW_UNKNOWN);
	BLOCK(flow, 0x1006, right);
	BLOCK(flow, 0x1010, left);
	BLOCK(flow, 0x1014, tail);
	EXPECT("key", sites[0].class, FLOW_DEPENDENT);
}

/*
 * A list in rbx with a call for each node; values that the call may change are unknown
 * after it.
 */
static void past_calls(void)
{
	/* 1000: mov rdi,[rbx+8]; call f */
	static const struct code head[] = { I("\x48\x8b\x7b\x08"), I("\xe8\x00\x01\x00\x00") };
	/* 1009: mov rbx,[rbx]; mov rdx,[rax]; test rbx,rbx; jne 1000 */
	static const struct code tail[] = { I("\x48\x8b\x1b"), I("\x48\x8b\x10"),
					    I("\x48\x85\xdb"), I("\x75\xec") };
	struct flow *flow = flow_new();
	struct flow_site *first = BLOCK(flow, 0x1000, head);
	struct flow_site *second = BLOCK(flow, 0x1009, tail);

	EXPECT("node", first[0].class, FLOW_DEPENDENT);
	EXPECT("call's push", first[1].class, FLOW_INDEPENDENT);
	EXPECT("next", second[0].class, FLOW_DEPENDENT);
	EXPECT("returned", second[1].class, FLOW_UNKNOWN);
}

/*
 * Spilled pointers are unknown, not chased: mov rax,[rsp+8]; mov rax,[rax]; the same with
 * rip.
 */
static void spills(void)
{
	static const struct code code[] = {
		I("\x48\x8b\x44\x24\x08"), I("\x48\x8b\x08"),
		I("\x48\x8b\x15\x00\x00\x00\x00"), I("\x48\x8b\x0a"), I("\xeb\xec"),
	};
	struct flow_site *sites = BLOCK(flow_new(), 0x1000, code);

	EXPECT("spill", sites[0].class, FLOW_INDEPENDENT);
	EXPECT("through it", sites[1].class, FLOW_UNKNOWN);
	EXPECT("global", sites[2].class, FLOW_INDEPENDENT);
	EXPECT("through it", sites[3].class, FLOW_UNKNOWN);
}

static void new_code(void)
{
	static const struct code chase[] = { I("\x48\x8b\x00"), I("\xeb\xfb") };
	static const struct code other[] = { I("\x48\x8b\x03"), I("\xeb\xfb") };
	struct flow *flow = flow_new();
	struct flow_site *sites = BLOCK(flow, 0x1000, chase);

	EXPECT("the same code", BLOCK(flow, 0x1000, chase) == sites, 1);
	EXPECT("other code", BLOCK(flow, 0x1000, other) != sites, 1);
}

static void decode(const char *bytes, size_t size, struct flow_op *op, struct flow_exit *exit)
{
	flow_decode((const uint8_t *)bytes, size, 0x1000, op, exit);
}
#define DECODE(text) decode(text, sizeof(text) - 1, &op, &exit)

static void operands(void)
{
	struct flow_op op;
	struct flow_exit exit;

	DECODE("\x4f\x8b\xac\xe5\x78\x56\x34\x12"); /* mov r13,[r13+r12*8+0x12345678] */
	EXPECT("base", op.base, 13);
	EXPECT("index", op.index, 12);
	EXPECT("scale", op.scale, 3);
	EXPECT("displacement", op.displacement, 0x12345678);
	EXPECT("written", op.written, 1u << 13);
	EXPECT("loads", op.loads, 1);
	DECODE("\x48\x8d\x44\x8b\x10"); /* lea rax,[rbx+rcx*4+16] */
	EXPECT("lea is no access", op.memory, 0);
	EXPECT("its sources", op.sources, 1u << REG_RBX | 1u << REG_RCX);
	DECODE("\x31\xc0"); /* xor eax,eax */
	EXPECT("zero has no source", op.sources, 0);
	DECODE("\xc5\xfd\x6f\x06"); /* vmovdqa ymm0,[rsi] */
	EXPECT("vector load", op.memory && op.base == 6 && !op.written, 1);
	DECODE("\xf3\x48\xa5"); /* rep movsq */
	EXPECT("string", op.memory, 1);
	DECODE("\x0f\x8f\x00\x01\x00\x00"); /* jg +0x100 */
	EXPECT("branch", exit.end, FLOW_BRANCH);
	EXPECT("target", exit.target, 0x1106);
	DECODE("\xff\xe0"); /* jmp rax */
	EXPECT("jump to an unknown target", exit.end, FLOW_GONE);
	/* Missing bytes: no read beyond the end. */
	DECODE("\x48");
	DECODE("\x0f");
	DECODE("\x48\x8b");
	DECODE("\x81");
	DECODE("\x66\x66\x66");
}

int main(void)
{
	chase_in_one_block();
	frame_pointer();
	sweep();
	gather();
	chase_over_blocks();
	past_calls();
	spills();
	new_code();
	operands();
	return finish("flow");
}
