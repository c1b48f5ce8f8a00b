// SPDX-License-Identifier: GPL-2.0-only
/* Registers, memory and the running CPU of the guest: see guest.h. */
#include "guest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const register_names[REGISTERS] = {
	"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
	"gs_base", "k_gs_base", "cr3", "cr4",
};

struct guest_cpu guest_cpus[GUEST_CPUS];
unsigned int guest_cpu_count;
bool guest_has_one_thread;

static struct guest_cpu *running;

void guest_add_cpu(const char *plugin, unsigned int index)
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
			fprintf(stderr, "%s: %s: not available from QEMU\n", plugin,
				register_names[number]);
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
	if (index >= guest_cpu_count)
		return false;
	running = &guest_cpus[index];
	running->own_data = own_data(running);
	return true;
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
		fputs("toll-guest: translating: no memory\n", stderr);
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
