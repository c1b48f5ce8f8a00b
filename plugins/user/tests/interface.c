/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plays a QEMU with version PLAYED of the plugin interface: accepts the library that
 * declares a version in its range, has one block translated and run, and reads the
 * recording. The interface is declared here a second time, from QEMU's documentation.
 */
#define _GNU_SOURCE
#include "../wire.h"
#include "check.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEWEST PLAYED
#define OLDEST (PLAYED == 1 ? 0 : PLAYED < 7 ? 2 : 7)
#define PLUGIN 0x706c7567ul
#define THREAD 5u
#define EXPORT __attribute__((visibility("default")))

struct info {
	const char *target_name;
	struct {
		int min, cur;
	} version;
	bool system_emulation;
	int cpus[2];
};

/* mov (%rax),%rbx */
static const uint8_t code[] = { 0x48, 0x8b, 0x18 };
static uint64_t memory[512];

/* --- QEMU's functions --- */

typedef void (*callback)(void);

static callback translated, exited, called, returned, ended, accessed;
static void *accessed_data, *ended_data;

#if PLAYED < 7
#define DATA
#define CALL(cb, types, ...) ((void(*)(uint64_t, types))cb)(PLUGIN, __VA_ARGS__)
#else
#define DATA , void *data __attribute__((unused))
#define CALL(cb, types, ...) ((void(*)(types, void *))cb)(__VA_ARGS__, NULL)
#endif
#define TYPES(...) __VA_ARGS__

#define REGISTRATION(event, to)                                                 \
	EXPORT void qemu_plugin_register_##event(uint64_t id, callback cb DATA) \
	{                                                                       \
		EXPECT("the plugin's ID", id, PLUGIN);                          \
		to = cb;                                                        \
	}
REGISTRATION(vcpu_tb_trans_cb, translated)
REGISTRATION(vcpu_exit_cb, exited)
REGISTRATION(vcpu_syscall_cb, called)
REGISTRATION(vcpu_syscall_ret_cb, returned)

EXPORT void qemu_plugin_register_atexit_cb(uint64_t id, callback cb, void *data)
{
	EXPECT("the plugin's ID", id, PLUGIN);
	ended = cb;
	ended_data = data;
}

EXPORT void qemu_plugin_register_vcpu_mem_cb(void *insn, callback cb, int flags, int rw,
					     void *data)
{
	(void)insn, (void)flags, (void)rw;
	accessed = cb;
	accessed_data = data;
}

EXPORT size_t qemu_plugin_tb_n_insns(const void *block)
{
	(void)block;
	return 1;
}

EXPORT uint64_t qemu_plugin_tb_vaddr(const void *block)
{
	(void)block;
	return (uint64_t)code;
}

EXPORT void *qemu_plugin_tb_get_insn(const void *block, size_t index)
{
	(void)block, (void)index;
	return (void *)code;
}

EXPORT size_t qemu_plugin_insn_size(const void *insn)
{
	(void)insn;
	return sizeof(code);
}

EXPORT void *qemu_plugin_insn_haddr(const void *insn)
{
	return (void *)insn;
}

#if PLAYED < 3
EXPORT const void *qemu_plugin_insn_data(const void *insn)
{
	return insn;
}
#else
EXPORT size_t qemu_plugin_insn_data(const void *insn, void *to, size_t length)
{
	size_t copied = length < sizeof(code) ? length : sizeof(code);

	memcpy(to, insn, copied);
	return copied;
}
#endif

EXPORT unsigned int qemu_plugin_mem_size_shift(uint32_t info)
{
	(void)info;
	return 3;
}

/* --- the run --- */

/* Loads the library if this QEMU accepts its version. */
static void *load(const char *directory, const char *name)
{
	char path[4096];
	void *library;
	int *version;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		printf("%s\n", dlerror());
		failures++;
		return NULL;
	}
	version = dlsym(library, "qemu_plugin_version");
	if (version && *version >= OLDEST && *version <= NEWEST)
		return library;
	dlclose(library);
	return NULL;
}

static void *load_fitting(const char *directory)
{
	static const char *const names[] = {
		"libtoll_user.so", "libtoll_user-2.so", "libtoll_user-7.so",
	};
	void *fitting = NULL;
	int count = 0;

	for (int i = 0; i < 3; i++) {
		void *library = load(directory, names[i]);

		if (!library)
			continue;
		fitting = library;
		count++;
	}
	EXPECT("number of libraries that this QEMU loads", count, 1);
	return fitting;
}

static int install(void *library, const char *out)
{
	int (*install)(uint64_t, const struct info *, int, char **) =
		dlsym(library, "qemu_plugin_install");
	struct info info = { "x86_64", { OLDEST, NEWEST }, false, { 0, 0 } };
	char *arguments[] = {
		(char *)out,   "sample=1",    "l1_4k=16x4",  "l1_2m=8x4",
		"l1_1g=4x4",   "l2_4k=256x4", "l2_2m=256x4", "l2_1g=4x4",
		"l2_shared=1", "pde=4x4",     "pdpte=4x4",
	};

	return install(PLUGIN, &info, sizeof(arguments) / sizeof(*arguments), arguments);
}

static void run(void)
{
	static const char path[] = "/bin/true";

	CALL(translated, TYPES(const void *), code);
	EXPECT("the access has a callback", accessed != NULL, 1);
	if (!accessed)
		return;
	for (int i = 0; i < 3; i++)
		((void (*)(unsigned int, uint32_t, uint64_t, void *))accessed)(
			THREAD, 0, (uint64_t)memory, accessed_data);
	CALL(called,
	     TYPES(unsigned int, int64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t,
		   uint64_t, uint64_t, uint64_t),
	     THREAD, SYS_execve, (uint64_t)path, 0, 0, 0, 0, 0, 0, 0);
	CALL(returned, TYPES(unsigned int, int64_t, int64_t), THREAD, SYS_execve, -2);
	CALL(exited, TYPES(unsigned int), THREAD);
#if PLAYED < 7
	((void (*)(uint64_t, void *))ended)(PLUGIN, ended_data);
#else
	((void (*)(void *))ended)(ended_data);
#endif
}

static void check_recording(const struct header *header)
{
	EXPECT("magic", memcmp(header->magic, RECORDING_MAGIC, 8), 0);
	/* The system call returned, so the program was not replaced. */
	EXPECT("flags", header->flags, RECORDING_COMPLETE);
	EXPECT("accesses", header->seen, 3);
	EXPECT("walks", header->walks, 1);
	EXPECT("threads", header->threads, 1);
	EXPECT("base of the guest's addresses", header->guest_base, 0);
	EXPECT("execs", header->execs, 1);
	EXPECT("path of execve", strcmp(header->exec_path, "/bin/true"), 0);
}

int main(int argc, char **argv)
{
	int file = memfd_create("recording", 0);
	void *library = load_fitting(argc > 1 ? argv[1] : "user/build");
	char out[64], name[64];

	snprintf(out, sizeof(out), "out=/proc/self/fd/%d", file);
	snprintf(name, sizeof(name), "user/interface, version %d", PLAYED);
	if (!library)
		return finish(name);
	EXPECT("install", install(library, out), 0);
	if (failures)
		return finish(name);
	run();
	check_recording(mmap(NULL, RECORDING_HEADER, PROT_READ, MAP_SHARED, file, 0));
	return finish(name);
}
