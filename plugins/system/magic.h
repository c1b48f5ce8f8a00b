/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a guest talks to the virtual PMU: an instruction that does nothing,
 * nopl 0x6c6c6f74(%rax), with what is said in rdi (an operation below) and
 * rsi, rdx (its arguments). A guest without the plugin runs it all the same.
 */
#ifndef TOLL_MAGIC_H
#define TOLL_MAGIC_H

#define MAGIC_BYTES 0x0f, 0x1f, 0x80, 0x74, 0x6f, 0x6c, 0x6c

enum magic {
	/* A section begins: rsi is the address of its name, rdx the name's length. */
	MAGIC_BEGIN = 1,
	/* The section ends, its counts are written. */
	MAGIC_END = 2,
	/* The next write of CR3 stands for this value (rsi), PCID and bit 63 included. */
	MAGIC_CR3 = 3,
};

#endif
