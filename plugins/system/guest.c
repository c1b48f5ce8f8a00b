// SPDX-License-Identifier: GPL-2.0-only
/* What plugins for whole systems have in common: see guest.h. */
#include "guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const register_names[REGISTERS] = {
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
	"gs_base", "k_gs_base", "cr3", "cr4",
};

#define LONGEST_INSTRUCTION 15

struct guest_options guest_options = { .direct_map = 0xffff888000000000ull };
struct guest_cpu guest_cpus[GUEST_CPUS];
unsigned int guest_cpu_count;

/* Name of the plugin in messages. */
static const char *name = "toll-guest";

static struct guest_cpu *running;

void guest_complain(const char *what, const char *detail)
{
	fprintf(stderr, "%s: %s: %s\n", name, what, detail);
}

/* --- options --- */

bool guest_number(const char *text, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 0);
	return *text && !*end;
}

static bool set_option(const char *option, const char *value,
		       bool (*set)(const char *name, const char *value))
{
	if (!strcmp(option, "out"))
		return (guest_options.out = value)[0] != 0;
	if (!strcmp(option, "direct_map"))
		return guest_number(value, &guest_options.direct_map);
	if (!strcmp(option, "one_thread"))
		return guest_options.has_one_thread = !strcmp(value, "on");
	return set(option, value);
}

static bool parse(const char *argument, bool (*set)(const char *name, const char *value))
{
	/* Values point into the copy, which is never freed. */
	char *option = strdup(argument), *value = option ? strchr(option, '=') : NULL;

	if (!value)
		return false;
	*value++ = '\0';
	return set_option(option, value, set);
}

bool guest_read_options(const char *plugin, const qemu_info_t *info, int argc, char **argv,
			bool (*set)(const char *name, const char *value))
{
	name = plugin;
	if (!info->system_emulation || strcmp(info->target_name, "x86_64")) {
		guest_complain(info->target_name, "not an x86-64 system emulation");
		return false;
	}
	for (int i = 0; i < argc; i++) {
		if (!parse(argv[i], set)) {
			guest_complain(argv[i], "not understood");
			return false;
		}
	}
	if (!guest_options.out)
		guest_complain("out", "not given");
	return guest_options.out;
}

/* --- registers and memory --- */

void guest_add_cpu(unsigned int index)
{
	struct guest_cpu *cpu = &guest_cpus[index % GUEST_CPUS];
	GArray *all = qemu_plugin_get_registers();
	const qemu_plugin_reg_descriptor *found = (const void *)all->data;

	cpu->index = index;
	cpu->buffer = g_byte_array_new();
	for (unsigned int i = 0; i < all->len; i++)
		for (int number = 0; number < REGISTERS; number++)
			if (!strcmp(found[i].name, register_names[number]))
				cpu->registers[number] = found[i].handle;
	for (int number = 0; number < REGISTERS; number++) {
		if (!cpu->registers[number]) {
			guest_complain(register_names[number], "not available from QEMU");
			exit(1);
		}
	}
	if (index >= guest_cpu_count)
		guest_cpu_count = index + 1;
}

bool guest_read_memory(struct guest_cpu *cpu, uint64_t address, void *to, size_t length)
{
	g_byte_array_set_size(cpu->buffer, 0);
	if (!qemu_plugin_read_memory_vaddr(address, cpu->buffer, length))
		return false;
	memcpy(to, cpu->buffer->data, length);
	return true;
}

bool guest_read_physical(struct guest_cpu *cpu, uint64_t physical, void *to, size_t length)
{
	return guest_read_memory(cpu, guest_options.direct_map + physical, to, length);
}

uint64_t guest_register(struct guest_cpu *cpu, uint8_t number)
{
	uint64_t value = 0;

	g_byte_array_set_size(cpu->buffer, 0);
	if (number < REGISTERS &&
	    qemu_plugin_read_register(cpu->registers[number], cpu->buffer) >= (int)sizeof(value))
		memcpy(&value, cpu->buffer->data, sizeof(value));
	return value;
}

uint64_t guest_address_of(struct guest_cpu *cpu, const struct operand *operand, uint64_t next)
{
	uint64_t base = operand->base == RIP_REGISTER ? next : guest_register(cpu, operand->base);

	return base + guest_register(cpu, operand->index) * operand->scale +
	       (int64_t)operand->displacement;
}

/* --- the running CPU --- */

unsigned int guest_running(unsigned int index)
{
	return running ? running->index : index;
}

/* The value of `cpu` does not matter: QEMU reads the registers of the running CPU. */
static uint64_t own_data(struct guest_cpu *cpu)
{
	uint64_t base = guest_register(cpu, GS_BASE);

	/* In user mode it is in the other register. */
	return base >> 63 ? base : guest_register(cpu, KERNEL_GS_BASE);
}

void guest_find_running(unsigned int index)
{
	uint64_t own = own_data(&guest_cpus[index]);

	running = &guest_cpus[index];
	for (unsigned int i = 0; i < guest_cpu_count; i++)
		if (guest_cpus[i].own_data == own)
			running = &guest_cpus[i];
}

bool guest_learn_running(uint64_t index)
{
	bool is_new;

	if (index >= guest_cpu_count)
		return false;
	running = &guest_cpus[index];
	is_new = !running->own_data;
	running->own_data = own_data(running);
	return is_new;
}

/* --- data of callbacks; QEMU serialises translation --- */

static struct kept {
	struct kept *next;
	uint64_t words[];
} *kept;

void *guest_keep(const void *value, size_t size)
{
	struct kept *new = malloc(sizeof(*new) + size);

	if (!new) {
		guest_complain("translating", "no memory");
		abort();
	}
	new->next = kept;
	kept = new;
	return memcpy(new->words, value, size);
}

void guest_forget_kept(qemu_plugin_id_t id)
{
	(void)id;
	while (kept) {
		struct kept *next = kept->next;

		free(kept);
		kept = next;
	}
}

/* --- instructions that the lab knows --- */

void guest_watch(struct qemu_plugin_insn *insn, const struct guest_handlers *handlers, void *said)
{
	uint8_t code[LONGEST_INSTRUCTION];
	size_t length = qemu_plugin_insn_data(insn, code, sizeof(code));
	struct flushing flushing = { decode(code, length), qemu_plugin_insn_vaddr(insn) + length };

	switch (flushing.instruction.what) {
	case DECODED_OTHER:
		break;
	case DECODED_SAY:
		qemu_plugin_register_vcpu_insn_exec_cb(insn, handlers->on_say,
						       QEMU_PLUGIN_CB_R_REGS, said);
		break;
	case DECODED_KEEP:
		qemu_plugin_register_vcpu_insn_exec_cb(insn, handlers->on_keep,
						       QEMU_PLUGIN_CB_NO_REGS, NULL);
		break;
	default:
		qemu_plugin_register_vcpu_insn_exec_cb(insn, handlers->on_flushing,
						       QEMU_PLUGIN_CB_R_REGS,
						       guest_keep(&flushing, sizeof(flushing)));
	}
}
