// SPDX-License-Identifier: MIT OR Apache-2.0
// Lets a libtoll_preload.so that is built on a system with a new glibc run with glibc 2.28: stage.sh links it into the packaged
// library. The linker takes the newest version of each function of glibc, and the newest versions of the functions below are
// from glibc 2.30 and 2.33 to 2.35. Each gets a definition here that calls the old version, which glibc keeps for old programs.
// All of them are compiled hidden: exported ones would take the place of the program's own.
//
// A build with a linker for an old glibc (cargo-zigbuild) would replace the unwinder by LLVM's, which takes a lock and walks the
// list of modules for each frame; the library's own tests run with libgcc's.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

// As in <pthread.h>, which would add warnings about arguments that the functions here only pass on.
typedef unsigned int pthread_key_t;
typedef int pthread_once_t;
enum { PTHREAD_ONCE_INIT = 0 };

struct stat;
struct stat64;

// Declares the version of glibc 2.2.5 of a function. Without libpthread, which a program without threads does not load before
// glibc 2.34, the weak ones are null.
#define OLD(result, name, ...)                                                                                                 \
	extern result old_##name(__VA_ARGS__);                                                                                 \
	__asm__(".symver old_" #name "," #name "@GLIBC_2.2.5")
#define OLD_IF_THERE(result, name, ...) __attribute__((weak)) OLD(result, name, __VA_ARGS__)

OLD(void *, dlsym, void *, const char *);
OLD(int, __fxstat, int, int, struct stat *);
OLD(int, __fxstat64, int, int, struct stat64 *);
OLD(int, __xstat64, int, const char *, struct stat64 *);
OLD_IF_THERE(int, pthread_key_create, pthread_key_t *, void (*)(void *));
OLD_IF_THERE(int, pthread_key_delete, pthread_key_t);
OLD_IF_THERE(int, pthread_setspecific, pthread_key_t, const void *);
OLD_IF_THERE(int, pthread_once, pthread_once_t *, void (*)(void));

// The version of the structure that the kernel has on x86-64, for __fxstat() and its relatives.
enum { KERNEL_STAT = 1 };

int fstat(int file, struct stat *result)
{
	return old___fxstat(KERNEL_STAT, file, result);
}

int fstat64(int file, struct stat64 *result)
{
	return old___fxstat64(KERNEL_STAT, file, result);
}

int stat64(const char *path, struct stat64 *result)
{
	return old___xstat64(KERNEL_STAT, path, result);
}

pid_t gettid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

// RTLD_NEXT counts from the module of the caller, which is this library here too.
void *dlsym(void *handle, const char *name)
{
	void *found = old_dlsym(handle, name);
	__asm__ volatile("" : "+r"(found)); // no tail call
	return found;
}

// Rust's standard library uses the keys while it reports a panic, which this library does not do: without libpthread, failure
// is sufficient.
int pthread_key_create(pthread_key_t *key, void (*destructor)(void *))
{
	return old_pthread_key_create ? old_pthread_key_create(key, destructor) : ENOSYS;
}

// Another name of it; older builds of libgcc ask by it whether there may be threads.
__attribute__((alias("pthread_key_create"))) int __pthread_key_create(pthread_key_t *, void (*)(void *));

int pthread_key_delete(pthread_key_t key)
{
	return old_pthread_key_delete ? old_pthread_key_delete(key) : ENOSYS;
}

int pthread_setspecific(pthread_key_t key, const void *value)
{
	return old_pthread_setspecific ? old_pthread_setspecific(key, value) : ENOSYS;
}

// The unwinder fills a table once. Without libpthread there is one thread.
int pthread_once(pthread_once_t *once, void (*routine)(void))
{
	if (old_pthread_once)
		return old_pthread_once(once, routine);
	if (*once == PTHREAD_ONCE_INIT) {
		*once = PTHREAD_ONCE_INIT + 1;
		routine();
	}
	return 0;
}

// libgcc's unwinder asks so for the unwind table of a code address, if it was built for glibc 2.35 or later.
#ifdef DLFO_STRUCT_HAS_EH_DBASE
typedef int find_function(void *, struct dl_find_object *);

static find_function *find_of_glibc;

// A lookup in vain would leave its error for the program's dlerror(), hence the comparison.
__attribute__((constructor)) static void look_up(void)
{
	if (strverscmp(gnu_get_libc_version(), "2.35") >= 0)
		find_of_glibc = (find_function *)old_dlsym(RTLD_DEFAULT, "_dl_find_object");
}

struct search {
	uintptr_t code;
	struct dl_find_object *result;
};

static bool contains(const struct dl_phdr_info *module, const ElfW(Phdr) *part, uintptr_t code)
{
	return part->p_type == PT_LOAD && code - (module->dlpi_addr + part->p_vaddr) < part->p_memsz;
}

// Fills in what the unwinder reads of the result: the address of the table.
static int look_at(struct dl_phdr_info *module, size_t size, void *argument)
{
	struct search *search = argument;
	void *table = NULL;
	bool is_here = false;

	(void)size;
	for (int i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &module->dlpi_phdr[i];

		is_here |= contains(module, part, search->code);
		if (part->p_type == PT_GNU_EH_FRAME)
			table = (void *)(module->dlpi_addr + part->p_vaddr);
	}
	if (!is_here || !table)
		return 0;
	memset(search->result, 0, sizeof(*search->result));
	search->result->dlfo_eh_frame = table;
	return 1;
}

int _dl_find_object(void *code, struct dl_find_object *result)
{
	struct search search = { (uintptr_t)code, result };

	if (find_of_glibc)
		return find_of_glibc(code, result);
	return dl_iterate_phdr(look_at, &search) ? 0 : -1;
}
#endif
