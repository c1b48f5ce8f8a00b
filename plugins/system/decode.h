/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The instructions that a virtual PMU must observe: those that invalidate translations,
 * and those for communication with the guest. Independent of QEMU.
 */
#ifndef TOLL_DECODE_H
#define TOLL_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum decoded {
	DECODED_OTHER,
	DECODED_INVLPG,	   /* of the address that `memory` names */
	DECODED_WRITE_CR3, /* from register `source` */
	DECODED_WRITE_CR4, /* from register `source` */
	DECODED_INVPCID,   /* type in register `source`, descriptor at `memory` */
	DECODED_SAY,	   /* message from the guest: see toll_lab_magic.h */
	DECODED_KEEP,	   /* the next write of CR3 keeps translations */
	/* Of decode_persisting(): */
	DECODED_FLUSH_LINE,	   /* of the cache line at `memory` */
	DECODED_FENCE,		   /* SFENCE, MFENCE */
	DECODED_STORE_PAST_CACHES, /* MOVNTI, MOVNTDQ, MOVNTPS */
};

/*
 * Register numbers as encoded in instructions: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi,
 * r8...
 */
enum { NO_REGISTER = 0xff, RIP_REGISTER = 0xfe };

/* base + index * scale + displacement */
struct operand {
	uint8_t base, index, scale;
	int32_t displacement;
};

struct instruction {
	enum decoded what;
	uint8_t source;
	struct operand memory;
	size_t length;
};

/* Decodes one instruction of 64-bit code. */
struct instruction decode(const uint8_t *code, size_t length);

/* The same for the instructions that decide when a store is persistent. */
struct instruction decode_persisting(const uint8_t *code, size_t length);

#endif
