/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests of the decoder; the bytes are the output of GNU as for the instruction beside
 * them.
 */
#include "../decode.h"

#include "../../user/tests/check.h"

#define DECODE(...) decode((const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }))

static void check_memory(const char *what, struct instruction got, enum decoded expected,
			 struct operand memory)
{
	EXPECT(what, got.what, expected);
	EXPECT("base", got.memory.base, memory.base);
	EXPECT("index", got.memory.index, memory.index);
	EXPECT("scale", got.memory.scale, memory.scale);
	EXPECT("displacement", got.memory.displacement, memory.displacement);
}

static void invlpg(void)
{
	check_memory("invlpg (%rdi)", DECODE(0x0f, 0x01, 0x3f), DECODED_INVLPG,
		     (struct operand){ 7, NO_REGISTER, 1, 0 });
	check_memory("invlpg (%r12)", DECODE(0x41, 0x0f, 0x01, 0x3c, 0x24), DECODED_INVLPG,
		     (struct operand){ 12, NO_REGISTER, 1, 0 });
	check_memory("invlpg -8(%rbp)", DECODE(0x0f, 0x01, 0x7d, 0xf8), DECODED_INVLPG,
		     (struct operand){ 5, NO_REGISTER, 1, -8 });
	check_memory("invlpg 0x1000(%rax,%r9,8)",
		     DECODE(0x42, 0x0f, 0x01, 0xbc, 0xc8, 0x00, 0x10, 0x00, 0x00), DECODED_INVLPG,
		     (struct operand){ 0, 9, 8, 0x1000 });
	check_memory("invlpg 0x10(%rip)", DECODE(0x0f, 0x01, 0x3d, 0x10, 0x00, 0x00, 0x00),
		     DECODED_INVLPG, (struct operand){ RIP_REGISTER, NO_REGISTER, 1, 0x10 });
	check_memory("invlpg 0x20(,%rax,4)", DECODE(0x0f, 0x01, 0x3c, 0x85, 0x20, 0x00, 0x00, 0x00),
		     DECODED_INVLPG, (struct operand){ NO_REGISTER, 0, 4, 0x20 });
	EXPECT("swapgs", DECODE(0x0f, 0x01, 0xf8).what, DECODED_OTHER);
	EXPECT("lgdt (%rdi)", DECODE(0x0f, 0x01, 0x17).what, DECODED_OTHER);
}

static void control(void)
{
	struct instruction cr3 = DECODE(0x0f, 0x22, 0xdf), far = DECODE(0x41, 0x0f, 0x22, 0xdc);

	EXPECT("mov %rdi,%cr3", cr3.what, DECODED_WRITE_CR3);
	EXPECT("source", cr3.source, 7);
	EXPECT("mov %r12,%cr3", far.what, DECODED_WRITE_CR3);
	EXPECT("source", far.source, 12);
	EXPECT("mov %rax,%cr4", DECODE(0x0f, 0x22, 0xe0).what, DECODED_WRITE_CR4);
	EXPECT("mov %rax,%cr0", DECODE(0x0f, 0x22, 0xc0).what, DECODED_OTHER);
	EXPECT("mov %rax,%cr8", DECODE(0x44, 0x0f, 0x22, 0xc0).what, DECODED_OTHER);
	EXPECT("mov %cr3,%rax", DECODE(0x0f, 0x20, 0xd8).what, DECODED_OTHER);
}

static void pcid(void)
{
	struct instruction got = DECODE(0x66, 0x0f, 0x38, 0x82, 0x04, 0x24);

	check_memory("invpcid (%rsp),%rax", got, DECODED_INVPCID,
		     (struct operand){ 4, NO_REGISTER, 1, 0 });
	EXPECT("source", got.source, 0);
	EXPECT("without 66", DECODE(0x0f, 0x38, 0x82, 0x04, 0x24).what, DECODED_OTHER);
}

static void others(void)
{
	EXPECT("nopl 0x6c6c6f74(%rax)", DECODE(0x0f, 0x1f, 0x80, 0x74, 0x6f, 0x6c, 0x6c).what, DECODED_SAY);
	EXPECT("prefetchnta 0x6b6c6f74(%rax)", DECODE(0x0f, 0x18, 0x80, 0x74, 0x6f, 0x6c, 0x6b).what, DECODED_KEEP);
	EXPECT("prefetchnta 0(%rax)", DECODE(0x0f, 0x18, 0x80, 0, 0, 0, 0).what, DECODED_OTHER);
	EXPECT("nopl 0(%rax)", DECODE(0x0f, 0x1f, 0x80, 0, 0, 0, 0).what, DECODED_OTHER);
	EXPECT("ret", DECODE(0xc3).what, DECODED_OTHER);
	EXPECT("nothing", decode((const uint8_t[]){ 0 }, 0).what, DECODED_OTHER);
	/* Truncated in the middle of each part. */
	EXPECT("0f", DECODE(0x0f).what, DECODED_OTHER);
	EXPECT("0f 01", DECODE(0x0f, 0x01).what, DECODED_OTHER);
	EXPECT("no displacement", DECODE(0x0f, 0x01, 0x7d).what, DECODED_OTHER);
	EXPECT("no sib", DECODE(0x0f, 0x01, 0x3c).what, DECODED_OTHER);
}

#define PERSISTING(...) \
	decode_persisting((const uint8_t[]){ __VA_ARGS__ }, sizeof((uint8_t[]){ __VA_ARGS__ }))

static void persisting(void)
{
	check_memory("clwb (%rax)", PERSISTING(0x66, 0x0f, 0xae, 0x30), DECODED_FLUSH_LINE,
		     (struct operand){ 0, NO_REGISTER, 1, 0 });
	check_memory("clflushopt 0x40(%r9)", PERSISTING(0x66, 0x41, 0x0f, 0xae, 0x79, 0x40),
		     DECODED_FLUSH_LINE, (struct operand){ 9, NO_REGISTER, 1, 0x40 });
	/* As the kernel's alternatives pad it. */
	check_memory("ds clflush (%rdx)", PERSISTING(0x3e, 0x0f, 0xae, 0x3a), DECODED_FLUSH_LINE,
		     (struct operand){ 2, NO_REGISTER, 1, 0 });
	EXPECT("xsaveopt (%rdi)", PERSISTING(0x0f, 0xae, 0x37).what, DECODED_OTHER);
	EXPECT("sfence", PERSISTING(0x0f, 0xae, 0xf8).what, DECODED_FENCE);
	EXPECT("mfence", PERSISTING(0x0f, 0xae, 0xf0).what, DECODED_FENCE);
	EXPECT("lfence", PERSISTING(0x0f, 0xae, 0xe8).what, DECODED_OTHER);
	EXPECT("tpause %eax", PERSISTING(0x66, 0x0f, 0xae, 0xf0).what, DECODED_OTHER);
	EXPECT("movnti %rax,(%rdi)", PERSISTING(0x48, 0x0f, 0xc3, 0x07).what, DECODED_STORE_PAST_CACHES);
	EXPECT("movntdq %xmm0,(%rdi)", PERSISTING(0x66, 0x0f, 0xe7, 0x07).what,
	       DECODED_STORE_PAST_CACHES);
	EXPECT("movntps %xmm0,(%rdi)", PERSISTING(0x0f, 0x2b, 0x07).what, DECODED_STORE_PAST_CACHES);
	EXPECT("mov %rax,(%rdi)", PERSISTING(0x48, 0x89, 0x07).what, DECODED_OTHER);
	EXPECT("invlpg (%rdi)", PERSISTING(0x0f, 0x01, 0x3f).what, DECODED_OTHER);
	EXPECT("clwb without its operand", PERSISTING(0x66, 0x0f, 0xae).what, DECODED_OTHER);
	EXPECT("clwb (%rax)", DECODE(0x66, 0x0f, 0xae, 0x30).what, DECODED_OTHER);
}

int main(void)
{
	invlpg();
	control();
	pcid();
	persisting();
	others();
	return finish("system/decode");
}
