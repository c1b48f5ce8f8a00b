/* SPDX-License-Identifier: GPL-2.0-only */
/* One version of QEMU's plugin interface, INTERFACE (1, 2 or 7): see interface.h. */
#include "interface.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = INTERFACE;

#define UNUSED __attribute__((unused))

#if INTERFACE < 7
#define CALLBACK(...) qemu_plugin_id_t plugin UNUSED, __VA_ARGS__
#define END_CALLBACK qemu_plugin_id_t plugin UNUSED, void *data UNUSED
#define REGISTRATION(type) qemu_plugin_id_t id, type cb
#define REGISTER(event, id, cb) qemu_plugin_register_##event(id, cb)
#else
#define CALLBACK(...) __VA_ARGS__, void *data UNUSED
#define END_CALLBACK void *data UNUSED
#define REGISTRATION(type) qemu_plugin_id_t id, type cb, void *data
#define REGISTER(event, id, cb) qemu_plugin_register_##event(id, cb, NULL)
#endif

typedef void (*block_cb)(CALLBACK(struct qemu_plugin_tb *block));
typedef void (*vcpu_cb)(CALLBACK(unsigned int vcpu));
typedef void (*end_cb)(END_CALLBACK);
typedef void (*syscall_cb)(CALLBACK(unsigned int vcpu, int64_t number, uint64_t a1,
				    uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,
				    uint64_t a6, uint64_t a7, uint64_t a8));
typedef void (*syscall_return_cb)(CALLBACK(unsigned int vcpu, int64_t number,
					   int64_t result));

void qemu_plugin_register_vcpu_tb_trans_cb(REGISTRATION(block_cb));
void qemu_plugin_register_vcpu_exit_cb(REGISTRATION(vcpu_cb));
void qemu_plugin_register_vcpu_syscall_cb(REGISTRATION(syscall_cb));
void qemu_plugin_register_vcpu_syscall_ret_cb(REGISTRATION(syscall_return_cb));
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, end_cb cb, void *data);

/*
 * Before version 3 it takes only the instruction, and returns a pointer. The calling
 * convention of x86-64 permits calling both in the same way.
 */
uintptr_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *to,
				size_t length);

static bool copies_code;

const uint8_t *interface_code(const struct qemu_plugin_insn *insn, uint8_t *buffer)
{
	uintptr_t result = qemu_plugin_insn_data(insn, buffer, LONGEST_INSN);

	return copies_code ? buffer : (const uint8_t *)result;
}

static void block_translated(CALLBACK(struct qemu_plugin_tb *block))
{
	on_block(block);
}

static void vcpu_exited(CALLBACK(unsigned int vcpu))
{
	on_exit_vcpu(vcpu);
}

static void syscall_called(CALLBACK(unsigned int vcpu, int64_t number, uint64_t a1,
				    uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,
				    uint64_t a6, uint64_t a7 UNUSED, uint64_t a8 UNUSED))
{
	on_syscall(vcpu, number, (uint64_t[]){ a1, a2, a3, a4, a5, a6 });
}

static void syscall_returned(CALLBACK(unsigned int vcpu, int64_t number, int64_t result))
{
	on_syscall_return(vcpu, number, result);
}

static void ended(END_CALLBACK)
{
	on_end();
}

void interface_register(qemu_plugin_id_t id, const qemu_info_t *info)
{
	copies_code = info->version.cur >= 3;
	REGISTER(vcpu_tb_trans_cb, id, block_translated);
	REGISTER(vcpu_exit_cb, id, vcpu_exited);
	REGISTER(vcpu_syscall_cb, id, syscall_called);
	REGISTER(vcpu_syscall_ret_cb, id, syscall_returned);
	qemu_plugin_register_atexit_cb(id, ended, NULL);
}
