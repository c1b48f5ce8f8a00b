/* SPDX-License-Identifier: GPL-2.0-only */
/* Decodes the part of the x86-64 instruction set that moves addresses: see flow.h. */
#include "flow.h"

#include <string.h>

struct reader {
	const uint8_t *at;
	const uint8_t *end;
	bool wide, operand16, rep;
	uint8_t rex;
};

static uint8_t next(struct reader *r)
{
	return r->at < r->end ? *r->at++ : 0;
}

static int32_t next_signed(struct reader *r, int bytes)
{
	uint32_t value = 0;

	for (int i = 0; i < bytes; i++)
		value |= (uint32_t)next(r) << 8 * i;
	return bytes == 1 ? (int8_t)value : (int32_t)value;
}

static uint16_t bit(uint8_t reg)
{
	return reg < 16 ? 1u << reg : 0;
}

/* A ModRM byte and the following bytes. `rm` is REG_NONE for a memory operand. */
struct operands {
	uint8_t reg, rm;
};

static struct operands read_modrm(struct reader *r, struct flow_op *op)
{
	uint8_t modrm = next(r);
	uint8_t mod = modrm >> 6, rm = modrm & 7;
	struct operands operands = { (modrm >> 3 & 7) | (r->rex & 4) << 1, REG_NONE };

	if (mod == 3) {
		operands.rm = rm | (r->rex & 1) << 3;
		return operands;
	}
	op->memory = true;
	op->base = rm | (r->rex & 1) << 3;
	if (rm == 4) {
		uint8_t sib = next(r);

		op->base = (sib & 7) | (r->rex & 1) << 3;
		op->index = (sib >> 3 & 7) | (r->rex & 2) << 2;
		op->scale = sib >> 6;
		if (op->index == 4)
			op->index = REG_NONE;
		if ((sib & 7) == 5 && mod == 0) {
			op->base = REG_NONE;
			op->displacement = next_signed(r, 4);
		}
	} else if (rm == 5 && mod == 0) {
		op->base = REG_RIP;
		op->displacement = next_signed(r, 4);
	}
	if (mod == 1)
		op->displacement = next_signed(r, 1);
	else if (mod == 2)
		op->displacement = next_signed(r, 4);
	return operands;
}

/* dest gets the value of the register or memory operand. */
static void takes_rm(struct flow_op *op, uint8_t dest, struct operands operands)
{
	op->written |= bit(dest);
	if (operands.rm == REG_NONE)
		op->loads = true;
	else
		op->sources |= bit(operands.rm);
}

/* dest gets an unknown value. */
static void takes_unknown(struct flow_op *op, uint16_t dest)
{
	op->written |= dest;
	op->unknown = true;
}

/* The eight arithmetic instructions of 00..3F: add or adc sbb and sub xor cmp. */
static void arithmetic(struct reader *r, uint8_t opcode, struct flow_op *op)
{
	bool compares = (opcode & 0x38) == 0x38;
	bool clears = (opcode & 0x38) == 0x30 || (opcode & 0x38) == 0x28;
	struct operands o;

	if ((opcode & 7) >= 4) {
		/* rax with a constant. */
		op->written = compares ? 0 : bit(REG_RAX);
		op->sources = bit(REG_RAX);
		return;
	}
	o = read_modrm(r, op);
	if (compares)
		return;
	if (opcode & 2) {
		takes_rm(op, o.reg, o);
		op->sources |= bit(o.reg);
	} else if (o.rm != REG_NONE) {
		op->written = bit(o.rm);
		op->sources = bit(o.rm) | bit(o.reg);
	}
	/* xor r,r and sub r,r always give zero. */
	if (clears && o.rm == o.reg) {
		op->sources = 0;
		op->loads = false;
	}
}

/* Instructions that change their register or memory operand by a constant or by flags. */
static void in_place(struct reader *r, struct flow_op *op, bool steps)
{
	struct operands o = read_modrm(r, op);

	op->written = bit(o.rm);
	op->sources = bit(o.rm);
	op->steps = steps;
}

/* F6, F7: test, not, neg, mul, imul, div, idiv. */
static void group3(struct reader *r, struct flow_op *op)
{
	uint8_t which = r->at < r->end ? *r->at >> 3 & 7 : 0;
	struct operands o = read_modrm(r, op);

	if (which < 2)
		return;
	if (which < 4) {
		op->written = op->sources = bit(o.rm);
		return;
	}
	takes_rm(op, REG_RAX, o);
	op->written |= bit(REG_RDX);
	op->sources |= bit(REG_RAX);
}

/* FE, FF: inc, dec, call, jmp, push. */
static void group5(struct reader *r, struct flow_op *op, struct flow_exit *exit)
{
	uint8_t which = r->at < r->end ? *r->at >> 3 & 7 : 0;
	struct operands o = read_modrm(r, op);

	if (which < 2) {
		op->written = op->sources = bit(o.rm);
		op->steps = true;
	} else if (which < 4) {
		exit->end = FLOW_CALL;
	} else if (which < 6) {
		exit->end = FLOW_GONE;
	}
}

static void two_bytes(struct reader *r, uint64_t after, struct flow_op *op,
		      struct flow_exit *exit)
{
	uint8_t opcode = next(r);
	struct operands o;

	if ((opcode & 0xf0) == 0x80) {
		exit->end = FLOW_BRANCH;
		exit->target = after + next_signed(r, 4);
		return;
	}
	if (opcode == 0x0b) {
		exit->end = FLOW_GONE;
		return;
	}
	if (opcode == 0x05 || opcode == 0x31 || opcode == 0xa2) {
		/* syscall, rdtsc, cpuid. */
		takes_unknown(op, bit(REG_RAX) | bit(REG_RCX) | bit(REG_RDX) |
				  bit(REG_RBX) | bit(11));
		return;
	}
	if (opcode >= 0xc8 && opcode <= 0xcf) {
		uint8_t reg = (opcode & 7) | (r->rex & 1) << 3;

		op->written = op->sources = bit(reg);
		return;
	}
	if (opcode == 0x38 || opcode == 0x3a)
		next(r);
	o = read_modrm(r, op);
	switch (opcode) {
	case 0x40 ... 0x4f: /* cmov */
	case 0xaf: /* imul */
		takes_rm(op, o.reg, o);
		op->sources |= bit(o.reg);
		break;
	case 0xb6: case 0xb7: case 0xbe: case 0xbf: /* movzx, movsx */
	case 0xb8: case 0xbc: case 0xbd: /* popcnt, bsf, bsr */
		takes_rm(op, o.reg, o);
		break;
	case 0xa4: case 0xa5: case 0xac: case 0xad: /* shld, shrd */
	case 0xb3: case 0xbb: case 0xab: case 0xba: /* btr, btc, bts */
		op->written = op->sources = bit(o.rm);
		break;
	case 0xc0: case 0xc1: /* xadd */
	case 0xb0: case 0xb1: /* cmpxchg */
		takes_unknown(op, bit(o.reg) | bit(o.rm) | bit(REG_RAX));
		break;
	case 0x90 ... 0x9f: /* setcc */
		op->written = bit(o.rm);
		break;
	case 0x7e: /* movd, movq to a register; with F3 among vector registers */
		if (!r->rep)
			takes_unknown(op, bit(o.rm));
		break;
	case 0x2c: case 0x2d: case 0x50: case 0xc5: case 0xd7: /* from vector registers */
		takes_unknown(op, bit(o.reg));
		break;
	case 0xc7: /* cmpxchg8b, rdrand */
		takes_unknown(op, bit(o.rm) | bit(REG_RAX) | bit(REG_RDX));
		break;
	case 0x38: case 0x3a: /* crc32, movbe, pextr: either operand may change */
		takes_unknown(op, bit(o.reg) | bit(o.rm));
		break;
	default: /* vector instructions, prefetches, nop, bt */
		break;
	}
}

/*
 * VEX: BMI instructions write general registers; a gather's address is not a ModRM
 * address.
 */
static void vex(struct reader *r, uint8_t first, struct flow_op *op)
{
	uint8_t second = next(r), map = 1, opcode;
	struct operands o;

	r->rex = second & 0x80 ? 0 : 4;
	if (first == 0xc4) {
		uint8_t third = next(r);

		map = second & 0x1f;
		r->rex = (~second >> 5 & 7);
		second = third;
	}
	opcode = next(r);
	o = read_modrm(r, op);
	if (map == 2 && opcode >= 0x90 && opcode <= 0x93) {
		op->base = op->index = REG_NONE;
		return;
	}
	if (map == 2 && opcode >= 0xf2 && opcode <= 0xf7)
		takes_unknown(op, bit(o.reg) | bit(~second >> 3 & 15));
	else if (map == 3 && opcode == 0xf0)
		takes_rm(op, o.reg, o);
	else if (map == 1 && (opcode == 0x7e || opcode == 0xd7 || opcode == 0x50 ||
			      opcode == 0x2c || opcode == 0x2d))
		takes_unknown(op, bit(o.reg) | bit(o.rm));
	else if (map == 3 && opcode >= 0x14 && opcode <= 0x17)
		takes_unknown(op, bit(o.rm));
}

/* String instructions: two implied addresses; the source is used. */
static void string(uint8_t opcode, struct flow_op *op)
{
	op->memory = true;
	op->base = opcode == 0xaa || opcode == 0xab || opcode >= 0xae ? 7 : 6;
	if (opcode == 0xac || opcode == 0xad) {
		op->loads = true;
		op->written = bit(REG_RAX);
	}
}

static void stack(struct flow_op *op)
{
	op->memory = true;
	op->base = REG_RSP;
}

static void one_byte(struct reader *r, uint8_t opcode, uint64_t after,
		     struct flow_op *op, struct flow_exit *exit)
{
	uint8_t low = (opcode & 7) | (r->rex & 1) << 3;
	struct operands o;

	switch (opcode) {
	case 0x50 ... 0x57: case 0x68: case 0x6a: case 0x9c:
		stack(op);
		break;
	case 0x58 ... 0x5f:
		stack(op);
		takes_unknown(op, bit(low));
		break;
	case 0x9d:
		stack(op);
		break;
	case 0x63: case 0x8a: case 0x8b: /* movsxd, mov r,rm */
		o = read_modrm(r, op);
		takes_rm(op, o.reg, o);
		if (opcode == 0x8a)
			op->sources |= bit(o.reg);
		break;
	case 0x69: case 0x6b: /* imul r,rm,constant */
		o = read_modrm(r, op);
		takes_rm(op, o.reg, o);
		break;
	case 0x70 ... 0x7f:
		exit->end = FLOW_BRANCH;
		exit->target = after + next_signed(r, 1);
		break;
	case 0xe0 ... 0xe3: /* loop, jrcxz */
		exit->end = FLOW_BRANCH;
		exit->target = after + next_signed(r, 1);
		break;
	case 0x80: case 0x81: case 0x83: /* arithmetic with a constant */
		if ((r->at < r->end ? *r->at >> 3 & 7 : 0) == 7)
			read_modrm(r, op);
		else
			in_place(r, op, (*r->at >> 3 & 7) == 0 || (*r->at >> 3 & 7) == 5);
		break;
	case 0x84: case 0x85: /* test */
		read_modrm(r, op);
		break;
	case 0x86: case 0x87: /* xchg */
		o = read_modrm(r, op);
		takes_rm(op, o.reg, o);
		op->written |= bit(o.rm);
		op->sources |= bit(o.reg);
		break;
	case 0x88: case 0x89: /* mov rm,r */
		o = read_modrm(r, op);
		op->written = bit(o.rm);
		if (op->written)
			op->sources = bit(o.reg) | (opcode == 0x88 ? bit(o.rm) : 0);
		break;
	case 0x8d: /* lea: an address, no access */
		o = read_modrm(r, op);
		op->memory = false;
		op->written = bit(o.reg);
		op->sources = bit(op->base) | bit(op->index);
		op->base = op->index = REG_NONE;
		break;
	case 0x8f: /* pop m */
		read_modrm(r, op);
		break;
	case 0x90 ... 0x97: /* nop, xchg rax */
		if (low) {
			op->written = op->sources = bit(low) | bit(REG_RAX);
		}
		break;
	case 0x98: /* cdqe */
		op->written = op->sources = bit(REG_RAX);
		break;
	case 0x99: /* cqo */
		op->written = bit(REG_RDX);
		op->sources = bit(REG_RAX);
		break;
	case 0xa4: case 0xa5: case 0xa6: case 0xa7: case 0xaa: case 0xab:
	case 0xac: case 0xad: case 0xae: case 0xaf:
		string(opcode, op);
		break;
	case 0xa8: case 0xa9: case 0xcc: case 0xf4 ... 0xf5: case 0xf8 ... 0xfd:
		break;
	case 0xb0 ... 0xbf: /* mov r,constant */
		op->written = bit(low);
		break;
	case 0xc0: case 0xc1: case 0xd0 ... 0xd3: /* shifts */
		in_place(r, op, false);
		break;
	case 0xc2: case 0xc3: case 0xcb:
		stack(op);
		exit->end = FLOW_GONE;
		break;
	case 0xc6: case 0xc7: /* mov rm,constant */
		o = read_modrm(r, op);
		op->written = bit(o.rm);
		break;
	case 0xc9: /* leave */
		stack(op);
		takes_unknown(op, bit(REG_RBP));
		break;
	case 0xd8 ... 0xdf: /* x87 */
		read_modrm(r, op);
		break;
	case 0xe8:
		stack(op);
		exit->end = FLOW_CALL;
		break;
	case 0xe9:
		exit->end = FLOW_JUMP;
		exit->target = after + next_signed(r, 4);
		break;
	case 0xeb:
		exit->end = FLOW_JUMP;
		exit->target = after + next_signed(r, 1);
		break;
	case 0xf6: case 0xf7:
		group3(r, op);
		break;
	case 0xfe: case 0xff:
		group5(r, op, exit);
		break;
	default:
		takes_unknown(op, 0xffff & ~bit(REG_RSP));
		break;
	}
}

void flow_decode(const uint8_t *bytes, size_t size, uint64_t address,
		 struct flow_op *op, struct flow_exit *exit)
{
	struct reader r = { .at = bytes, .end = bytes + size };
	uint64_t after = address + size;
	uint8_t opcode;

	*op = (struct flow_op){ .base = REG_NONE, .index = REG_NONE };
	*exit = (struct flow_exit){ .end = FLOW_NEXT };
	for (opcode = next(&r);; opcode = next(&r)) {
		if (opcode == 0xf3 || opcode == 0xf2)
			r.rep = true;
		else if (opcode == 0x66)
			r.operand16 = true;
		else if (opcode != 0x67 && opcode != 0xf0 && opcode != 0x2e &&
			 opcode != 0x36 && opcode != 0x3e && opcode != 0x26 &&
			 opcode != 0x64 && opcode != 0x65)
			break;
		if (r.at == r.end)
			return;
	}
	if ((opcode & 0xf0) == 0x40) {
		r.rex = opcode;
		opcode = next(&r);
	}
	if (opcode == 0x0f)
		two_bytes(&r, after, op, exit);
	else if (opcode == 0xc4 || opcode == 0xc5)
		vex(&r, opcode, op);
	else if (opcode < 0x40 && (opcode & 7) < 6)
		arithmetic(&r, opcode, op);
	else
		one_byte(&r, opcode, after, op, exit);
	if (op->base == REG_RIP)
		op->displacement += (int32_t)after;
}
