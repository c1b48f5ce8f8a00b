// SPDX-License-Identifier: GPL-2.0-only
/*
 * The stores of a whole emulated system to a range of its physical memory, with what decides when
 * they are persistent:
 *
 *     qemu-system-x86_64 -plugin libtoll_stores.so,out=DIR,first=ADDRESS,bytes=SIZE
 *
 * From the guest's first step (toll_lab_magic.h) on, DIR/stores gets a record for each store to the
 * range, by the kernel or by a program; each CLFLUSH, CLFLUSHOPT and CLWB of a line of it; each SFENCE
 * and MFENCE; and each step. A store that bypasses the caches (MOVNTI, MOVNTDQ, MOVNTPS) is a store
 * and a flush of its lines. Other instructions that order flushes on x86, those with a LOCK prefix
 * among them, are not recorded: what relies on them looks as if it relied on nothing.
 *
 * Flushes are recognised in the kernel's direct map only, which needs a kernel without KASLR. The
 * guest must have one CPU. Devices do not appear.
 */
#define _GNU_SOURCE
#include "guest.h"
#include "../../kernel/lab/include/linux/toll_lab_magic.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE 64ull
#define LONGEST_INSTRUCTION 15
#define DIRECT_MAP_SIZE (1ull << 46)

/* Read by crates/toll-lab/src/cmd/crash_states/recording.rs. */
enum kind { KIND_STORE = 1, KIND_FLUSH, KIND_FENCE, KIND_STEP };

/* Numbers are little-endian. */
struct record {
	uint32_t kind;
	/* Of a store: 1 to 8 bytes. */
	uint32_t size;
	/* From the start of the range; of a step: its first number. */
	uint64_t offset;
	/* Of a store: what is stored; of a step: its second number. */
	uint64_t value;
};

static struct {
	uint64_t first, bytes;
} range;

static FILE *file;
static char *path;

static _Noreturn void give_up(const char *what, const char *why)
{
	guest_complain(what, why);
	exit(1);
}

static void record(enum kind kind, uint32_t size, uint64_t offset, uint64_t value)
{
	struct record record = { kind, size, offset, value };

	if (file && !fwrite(&record, sizeof(record), 1, file))
		give_up(path, strerror(errno));
}

/* The offset of a physical address in the range; ~0: it is elsewhere. */
static uint64_t offset_of(uint64_t physical)
{
	return physical - range.first < range.bytes ? physical - range.first : ~0ull;
}

/* As offset_of() of what the kernel's direct map has at an address. */
static uint64_t mapped_offset_of(uint64_t address)
{
	uint64_t physical = address - guest_options.direct_map;

	return physical < DIRECT_MAP_SIZE ? offset_of(physical) : ~0ull;
}

/* --- stores --- */

static uint64_t offset_of_access(qemu_plugin_meminfo_t info, uint64_t address)
{
	struct qemu_plugin_hwaddr *place;

	if (address - guest_options.direct_map < DIRECT_MAP_SIZE)
		return mapped_offset_of(address);
	place = qemu_plugin_get_hwaddr(info, address);
	if (!place || qemu_plugin_hwaddr_is_io(place))
		return ~0ull;
	return offset_of(qemu_plugin_hwaddr_phys_addr(place));
}

static void record_store(qemu_plugin_meminfo_t info, uint64_t offset)
{
	qemu_plugin_mem_value value = qemu_plugin_mem_get_value(info);

	switch (value.type) {
	case QEMU_PLUGIN_MEM_VALUE_U8:
		record(KIND_STORE, 1, offset, value.data.u8);
		break;
	case QEMU_PLUGIN_MEM_VALUE_U16:
		record(KIND_STORE, 2, offset, value.data.u16);
		break;
	case QEMU_PLUGIN_MEM_VALUE_U32:
		record(KIND_STORE, 4, offset, value.data.u32);
		break;
	case QEMU_PLUGIN_MEM_VALUE_U64:
		record(KIND_STORE, 8, offset, value.data.u64);
		break;
	case QEMU_PLUGIN_MEM_VALUE_U128:
		record(KIND_STORE, 8, offset, value.data.u128.low);
		record(KIND_STORE, 8, offset + 8, value.data.u128.high);
		break;
	default:
		give_up("a store", "its size is unknown");
	}
}

static void on_store(unsigned int index, qemu_plugin_meminfo_t info, uint64_t address, void *bypasses)
{
	uint64_t size = 1ull << qemu_plugin_mem_size_shift(info), offset;

	(void)index;
	if (!file)
		return;
	offset = offset_of_access(info, address);
	if (offset == ~0ull)
		return;
	record_store(info, offset);
	if (!bypasses)
		return;
	for (uint64_t line = offset & ~(LINE - 1); line < offset + size; line += LINE)
		record(KIND_FLUSH, 0, line, 0);
}

/* --- flushes, fences and steps --- */

static void on_flush(unsigned int index, void *data)
{
	const struct flushing *flushing = data;
	uint64_t offset = mapped_offset_of(guest_address_of(
		&guest_cpus[index], &flushing->instruction.memory, flushing->next));

	if (offset != ~0ull)
		record(KIND_FLUSH, 0, offset & ~(LINE - 1), 0);
}

static void on_fence(unsigned int index, void *data)
{
	(void)index;
	(void)data;
	record(KIND_FENCE, 0, 0, 0);
}

static void on_say(unsigned int index, void *data)
{
	struct guest_cpu *cpu = &guest_cpus[index];

	(void)data;
	if (guest_register(cpu, RDI) != TOLL_LAB_STEP)
		return;
	if (!file)
		file = fopen(path, "wb");
	if (!file)
		give_up(path, strerror(errno));
	record(KIND_STEP, 0, guest_register(cpu, RSI), guest_register(cpu, RDX));
}

/* --- QEMU callbacks --- */

static void watch_instruction(struct qemu_plugin_insn *insn)
{
	uint8_t code[LONGEST_INSTRUCTION];
	size_t length = qemu_plugin_insn_data(insn, code, sizeof(code));
	struct instruction found = decode_persisting(code, length);
	struct flushing flushing = { found, qemu_plugin_insn_vaddr(insn) + length };
	bool bypasses = found.what == DECODED_STORE_PAST_CACHES;

	if (decode(code, length).what == DECODED_SAY)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_say, QEMU_PLUGIN_CB_R_REGS, NULL);
	if (found.what == DECODED_FENCE)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_fence, QEMU_PLUGIN_CB_NO_REGS, NULL);
	if (found.what == DECODED_FLUSH_LINE)
		qemu_plugin_register_vcpu_insn_exec_cb(insn, on_flush, QEMU_PLUGIN_CB_R_REGS,
						       guest_keep(&flushing, sizeof(flushing)));
	qemu_plugin_register_vcpu_mem_cb(insn, on_store, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_W,
					 (void *)(uintptr_t)bypasses);
}

static void on_block(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	size_t count = qemu_plugin_tb_n_insns(tb);

	(void)id;
	for (size_t i = 0; i < count; i++)
		watch_instruction(qemu_plugin_tb_get_insn(tb, i));
}

static void on_cpu(qemu_plugin_id_t id, unsigned int index)
{
	(void)id;
	if (index)
		give_up("CPU", "more than one");
	guest_add_cpu(index);
}

static void on_exit_of_guest(qemu_plugin_id_t id, void *data)
{
	(void)id;
	(void)data;
	if (file && fclose(file))
		guest_complain(path, strerror(errno));
}

static bool set_option(const char *name, const char *value)
{
	if (!strcmp(name, "first"))
		return guest_number(value, &range.first);
	return !strcmp(name, "bytes") && guest_number(value, &range.bytes);
}

QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info,
					   int argc, char **argv)
{
	if (!guest_read_options("toll-stores", info, argc, argv, set_option))
		return -1;
	if (!range.bytes) {
		guest_complain("bytes", "not given");
		return -1;
	}
	if (asprintf(&path, "%s/stores", guest_options.out) < 0) {
		guest_complain("beginning", "no memory");
		return -1;
	}
	qemu_plugin_register_vcpu_init_cb(id, on_cpu);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_block);
	qemu_plugin_register_flush_cb(id, guest_forget_kept);
	qemu_plugin_register_atexit_cb(id, on_exit_of_guest, NULL);
	return 0;
}
