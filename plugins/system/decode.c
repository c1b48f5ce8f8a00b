/* SPDX-License-Identifier: GPL-2.0-only */
/* Decodes the instructions that are relevant to a virtual PMU: see decode.h. */
#include "decode.h"

#include <string.h>

/* The undecoded bytes of an instruction. */
struct reader {
	const uint8_t *at, *end;
};

static int next(struct reader *reader)
{
	return reader->at < reader->end ? *reader->at++ : -1;
}

static bool displacement(struct reader *reader, unsigned int bytes, int32_t *value)
{
	uint32_t raw = 0;

	if ((size_t)(reader->end - reader->at) < bytes)
		return false;
	for (unsigned int i = 0; i < bytes; i++)
		raw |= (uint32_t)reader->at[i] << (8 * i);
	reader->at += bytes;
	*value = bytes == 1 ? (int8_t)raw : (int32_t)raw;
	return true;
}

/* The operand of a ModRM byte with a mode other than 3 (register). */
static bool memory(struct reader *reader, uint8_t rex, uint8_t modrm, struct operand *operand)
{
	unsigned int mode = modrm >> 6, rm = modrm & 7, bytes = mode == 1 ? 1 : mode == 2 ? 4 : 0;

	*operand = (struct operand){ rm | (rex & 1) << 3, NO_REGISTER, 1, 0 };
	if (rm == 4) {
		int sib = next(reader);

		if (sib < 0)
			return false;
		operand->base = (sib & 7) | (rex & 1) << 3;
		operand->index = (sib >> 3 & 7) | (rex & 2) << 2;
		operand->scale = 1u << (sib >> 6);
		if (operand->index == 4)
			operand->index = NO_REGISTER;
		if (mode == 0 && (sib & 7) == 5) {
			operand->base = NO_REGISTER;
			bytes = 4;
		}
	} else if (mode == 0 && rm == 5) {
		operand->base = RIP_REGISTER;
		bytes = 4;
	}
	return displacement(reader, bytes, &operand->displacement);
}

/* 0F 01 /7 with memory: INVLPG. */
static enum decoded group7(struct reader *reader, uint8_t rex, struct instruction *found)
{
	int modrm = next(reader);

	if (modrm < 0 || modrm >> 6 == 3 || (modrm >> 3 & 7) != 7)
		return DECODED_OTHER;
	return memory(reader, rex, modrm, &found->memory) ? DECODED_INVLPG : DECODED_OTHER;
}

/* 0F 22: MOV to a control register. The mode bits are ignored, as the processor does. */
static enum decoded to_control(struct reader *reader, uint8_t rex, struct instruction *found)
{
	int modrm = next(reader);

	if (modrm < 0 || rex & 4)
		return DECODED_OTHER;
	found->source = (modrm & 7) | (rex & 1) << 3;
	switch (modrm >> 3 & 7) {
	case 3:
		return DECODED_WRITE_CR3;
	case 4:
		return DECODED_WRITE_CR4;
	default:
		return DECODED_OTHER;
	}
}

/* 66 0F 38 82: INVPCID. */
static enum decoded invpcid(struct reader *reader, uint8_t rex, struct instruction *found)
{
	int modrm;

	if (next(reader) != 0x82)
		return DECODED_OTHER;
	modrm = next(reader);
	if (modrm < 0 || modrm >> 6 == 3)
		return DECODED_OTHER;
	found->source = (modrm >> 3 & 7) | (rex & 4) << 1;
	return memory(reader, rex, modrm, &found->memory) ? DECODED_INVPCID : DECODED_OTHER;
}

static bool is_prefix(int byte)
{
	switch (byte) {
	case 0x26:
	case 0x2e:
	case 0x36:
	case 0x3e:
	case 0x64:
	case 0x65:
	case 0x66:
	case 0x67:
	case 0xf0:
	case 0xf2:
	case 0xf3:
		return true;
	default:
		return false;
	}
}

/* Returns the first byte of the opcode, or -1. */
static int skip_prefixes(struct reader *reader, uint8_t *rex, bool *is_66)
{
	int byte;

	while (is_prefix(byte = next(reader)))
		*is_66 |= byte == 0x66;
	if (byte >> 4 != 4)
		return byte;
	*rex = byte;
	return next(reader);
}

static enum decoded two_bytes(struct reader *reader, uint8_t rex, bool is_66,
			      struct instruction *found)
{
	switch (next(reader)) {
	case 0x01:
		return group7(reader, rex, found);
	case 0x22:
		return to_control(reader, rex, found);
	case 0x38:
		return is_66 ? invpcid(reader, rex, found) : DECODED_OTHER;
	default:
		return DECODED_OTHER;
	}
}

struct instruction decode(const uint8_t *code, size_t length)
{
	/* nopl 0x6c6c6f74(%rax) and prefetchnta 0x6b6c6f74(%rax) */
	static const uint8_t say[] = { 0x0f, 0x1f, 0x80, 0x74, 0x6f, 0x6c, 0x6c };
	static const uint8_t keep[] = { 0x0f, 0x18, 0x80, 0x74, 0x6f, 0x6c, 0x6b };
	struct reader reader = { code, code + length };
	struct instruction found = { .length = length };
	bool is_66 = false;
	uint8_t rex = 0;

	if (length == sizeof(say) && !memcmp(code, say, length))
		found.what = DECODED_SAY;
	if (length == sizeof(keep) && !memcmp(code, keep, length))
		found.what = DECODED_KEEP;
	if (found.what != DECODED_OTHER)
		return found;
	if (skip_prefixes(&reader, &rex, &is_66) == 0x0f)
		found.what = two_bytes(&reader, rex, is_66, &found);
	return found;
}

/* 0F AE: CLFLUSH is /7 with memory; with 66, CLFLUSHOPT is /7 and CLWB /6; MFENCE is F0, SFENCE F8. */
static enum decoded group15(struct reader *reader, uint8_t rex, bool is_66, struct instruction *found)
{
	int modrm = next(reader), operation = modrm >> 3 & 7;

	if (modrm < 0)
		return DECODED_OTHER;
	if (modrm >> 6 == 3)
		return !is_66 && operation >= 6 ? DECODED_FENCE : DECODED_OTHER;
	if (operation != 7 && !(operation == 6 && is_66))
		return DECODED_OTHER;
	return memory(reader, rex, modrm, &found->memory) ? DECODED_FLUSH_LINE : DECODED_OTHER;
}

struct instruction decode_persisting(const uint8_t *code, size_t length)
{
	struct reader reader = { code, code + length };
	struct instruction found = { .length = length };
	bool is_66 = false;
	uint8_t rex = 0;

	if (skip_prefixes(&reader, &rex, &is_66) != 0x0f)
		return found;
	switch (next(&reader)) {
	case 0xae:
		found.what = group15(&reader, rex, is_66, &found);
		break;
	case 0x2b:
	case 0xc3:
	case 0xe7:
		found.what = DECODED_STORE_PAST_CACHES;
		break;
	}
	return found;
}
