// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Runs an unmodified command in two sections: one until it first calls a given function of its own, and one from there to
 * its end.
 *
 *     upto FUNCTION SECTION COMMAND [ARGUMENT...]
 *
 * The sections are SECTION-start, which begins before the command is executed, and SECTION-rest. The function is found
 * in the symbols of the command's file, which is not relocated; only a breakpoint is set there.
 */
#include "section.h"

#include <elf.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>

static const char *map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat stat;
	const char *file;

	if (fd < 0 || fstat(fd, &stat))
		fail(path);
	file = mmap(NULL, stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file == MAP_FAILED)
		fail(path);
	close(fd);
	return file;
}

static unsigned long address_of(const char *path, const char *function)
{
	const char *file = map_file(path);
	const Elf64_Ehdr *header = (const void *)file;
	const Elf64_Shdr *sections = (const void *)(file + header->e_shoff);

	if (memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_type != ET_EXEC) {
		fprintf(stderr, "%s: is no program that is not relocated\n", path);
		exit(1);
	}
	for (int i = 0; i < header->e_shnum; i++) {
		const Elf64_Sym *symbols = (const void *)(file + sections[i].sh_offset);
		const char *names = file + sections[sections[i].sh_link].sh_offset;

		if (sections[i].sh_type != SHT_SYMTAB)
			continue;
		for (size_t j = 0; j < sections[i].sh_size / sizeof(*symbols); j++)
			if (!strcmp(names + symbols[j].st_name, function) && symbols[j].st_value)
				return symbols[j].st_value;
	}
	fprintf(stderr, "%s: has no symbol %s\n", path, function);
	exit(1);
}

static void wait_for_trap(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		fail("wait");
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) {
		fprintf(stderr, "the command did not get there: status %#x\n", status);
		exit(1);
	}
}

/* Lets a child that was just executed go on to an address. */
static void run_to(pid_t child, unsigned long address)
{
	struct user_regs_struct registers;
	long word;

	wait_for_trap(child);
	errno = 0;
	word = ptrace(PTRACE_PEEKTEXT, child, address, 0);
	if (errno || ptrace(PTRACE_POKETEXT, child, address, (word & ~0xffl) | 0xcc) || ptrace(PTRACE_CONT, child, 0, 0))
		fail("breakpoint");
	wait_for_trap(child);
	if (ptrace(PTRACE_POKETEXT, child, address, word) || ptrace(PTRACE_GETREGS, child, 0, &registers))
		fail("breakpoint");
	registers.rip = address;
	if (ptrace(PTRACE_SETREGS, child, 0, &registers))
		fail("breakpoint");
}

int main(int argc, char **argv)
{
	char start[64], rest[64];
	unsigned long address;
	pid_t child;

	if (argc < 4)
		usage("upto FUNCTION SECTION COMMAND [ARGUMENT...]");
	address = address_of(argv[3], argv[1]);
	snprintf(start, sizeof(start), "%s-start", argv[2]);
	snprintf(rest, sizeof(rest), "%s-rest", argv[2]);
	section_begin(start);
	child = new_child();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execv(argv[3], argv + 3);
		fail(argv[3]);
	}
	run_to(child, address);
	section_end();
	section_begin(rest);
	if (ptrace(PTRACE_DETACH, child, 0, 0))
		fail("detach");
	wait_for_children(1);
	section_end();
	return 0;
}
