/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tests of the adversarial TLB with handmade page tables and memory: what hardware could still use,
 * and when that is wrong.
 */
#include "../world.h"

#include "../../user/tests/check.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096ull
#define REGION (2ull << 20)
#define AT 0x500000000000ull
#define KERNEL_AT 0xffffc90000000000ull

#define PRESENT 1ull
#define RW 2ull
#define USER 4ull
#define ACCESSED 0x20ull
#define LARGE 0x80ull
#define GLOBAL 0x100ull
#define NX (1ull << 63)
#define KEEP (1ull << 63)

/* Error codes of page faults. */
enum { READS = 4, WRITES = 6 };

/* Physical memory: tables from its begin, data in its second half and above 4 MiB. */
static union {
	uint64_t words[1 << 20];
	uint8_t bytes[8 << 20];
} memory;
static uint64_t used;
static struct world *world;
static struct cpu *cpu, *other;

enum { FRAME = 4 << 20, SECOND = FRAME + 4096, LARGE_FRAME = 6 << 20 };

static bool read_memory(void *context, uint64_t physical, void *to, size_t length)
{
	(void)context;
	if (physical + length > sizeof(memory))
		return false;
	memcpy(to, memory.bytes + physical, length);
	return true;
}

static unsigned int no_calls(void *context, uint64_t *calls)
{
	(void)context;
	(void)calls;
	return 0;
}

static uint64_t new_table(void)
{
	return used++ * PAGE;
}

/* The physical address of the entry for a page of 4 KiB (level 0) or 2 MiB (1). */
static uint64_t entry_of(uint64_t root, uint64_t address, int level)
{
	uint64_t table = root;

	for (int at = 3; at > level; at--) {
		uint64_t *entry = &memory.words[table / 8 + (address >> (12 + 9 * at) & 511)];

		if (!*entry)
			*entry = new_table() | PRESENT | RW | USER;
		table = *entry & ~(PAGE - 1);
	}
	return table + (address >> (12 + 9 * level) & 511) * 8;
}

/* As the kernel of `by` does it: the store is seen. */
static void set(struct cpu *by, uint64_t entry, uint64_t value)
{
	memory.words[entry / 8] = value;
	if (world_is_table(world, entry))
		cpu_store_to_table(by, entry, 8);
}

static uint64_t root;

static void map(uint64_t address, uint64_t frame, uint64_t flags)
{
	set(cpu, entry_of(root, address, !!(flags & LARGE)), frame | flags | PRESENT);
}

/* By the other CPU's kernel. */
static void unmap(uint64_t address)
{
	set(other, entry_of(root, address, 0), 0);
}

/* Two CPUs that run the same process, `cpu` in user mode. */
static void start(void)
{
	memset(&memory, 0, sizeof(memory));
	used = 1;
	root = new_table();
	world = world_new(4, read_memory, no_calls);
	cpu = world_cpu(world, 0, NULL);
	other = world_cpu(world, 1, NULL);
	world_begin(world);
	cpu_load_root(cpu, root | 1);
	cpu_load_root(other, root | 1);
	cpu_run_task(cpu, 1, "first\0        ");
	cpu_run_task(other, 2, "second\0       ");
	cpu_enter_user(cpu);
	map(AT, FRAME, RW | USER);
	cpu_frames_taken(cpu, FRAME >> 12, 1);
}

static void load(uint64_t address)
{
	cpu_access(cpu, KIND_LOAD, address, 8);
}

static void store(uint64_t address)
{
	cpu_access(cpu, KIND_STORE, address, 8);
}

/* The findings of a test, which ends here. */
static void expect(const char *what, unsigned int causes, enum finding first)
{
	EXPECT(what, world->causes, causes);
	if (causes && world->causes)
		EXPECT(what, world->cause[0].finding, first);
	EXPECT("lost", world->lost, 0);
}

static void expect_nothing(const char *what)
{
	expect(what, 0, 0);
}

static void give_away(uint64_t frame)
{
	cpu_frames_freed(other, frame >> 12, 0);
	cpu_frames_taken(other, frame >> 12, 0);
}

static void owners(void)
{
	start();
	load(AT);
	unmap(AT);
	cpu_invalidate_address(cpu, AT);
	give_away(FRAME);
	expect_nothing("a flush before the frame is freed");

	start();
	map(AT, FRAME, USER);
	load(AT);
	unmap(AT);
	cpu_frames_freed(other, FRAME >> 12, 0);
	expect_nothing("a read-only translation of a freed frame");
	cpu_frames_taken(other, FRAME >> 12, 0);
	expect("another owner", 1, OWNER_READ);

	start();
	load(AT);
	unmap(AT);
	cpu_frames_freed(other, FRAME >> 12, 0);
	expect("a writable translation of a freed frame", 1, FREED_WRITE);

	start();
	unmap(AT);
	give_away(FRAME);
	expect_nothing("a translation that was never used");

	start();
	load(AT);
	give_away(SECOND);
	expect_nothing("another frame");
}

static void waiting(void)
{
	start();
	load(AT);
	cpu_leave_user(cpu);
	unmap(AT);
	give_away(FRAME);
	expect_nothing("the kernel may still flush");
	cpu_enter_user(cpu);
	expect("user mode goes on", 1, OWNER_WRITE);

	start();
	load(AT);
	cpu_leave_user(cpu);
	unmap(AT);
	give_away(FRAME);
	cpu_invalidate_address(cpu, AT);
	cpu_enter_user(cpu);
	expect_nothing("a flush before user mode goes on");

	start();
	load(AT);
	cpu_load_root(cpu, root | 2);
	unmap(AT);
	give_away(FRAME);
	expect_nothing("another PCID is loaded");
	cpu_leave_user(cpu);
	cpu_load_root(cpu, root | 1 | KEEP);
	cpu_enter_user(cpu);
	expect("the PCID comes back with its translations", 1, OWNER_WRITE);

	start();
	load(AT);
	cpu_load_root(cpu, root | 2);
	unmap(AT);
	give_away(FRAME);
	cpu_leave_user(cpu);
	cpu_load_root(cpu, root | 1);
	cpu_enter_user(cpu);
	expect_nothing("the PCID comes back without them");
}

static void content(void)
{
	start();
	map(AT, FRAME, USER);
	load(AT);
	unmap(AT);
	map(AT, SECOND, RW | USER);
	load(AT);
	expect_nothing("an equal copy");
	EXPECT("legal", cpu->legal, 1);
	EXPECT("stale-capable", cpu->stale, 1);
	memory.bytes[SECOND + 64] = 1;
	load(AT);
	expect_nothing("another byte than those read");
	load(AT + 60);
	expect("a copy that differs", 1, STALE_READ);

	start();
	store(AT);
	unmap(AT);
	map(AT, SECOND, RW | USER);
	load(AT);
	expect_nothing("a load through an equal copy");
	store(AT);
	expect("a store that may reach the old frame", 1, STALE_WRITE);

	start();
	load(AT);
	unmap(AT);
	map(AT, SECOND, USER);
	memory.bytes[SECOND] = 1;
	cpu_access(cpu, KIND_FETCH, AT, 1);
	expect("code", 1, STALE_FETCH);
}

/* User mode faults, and goes on. */
static void fault(uint64_t address, uint64_t code)
{
	cpu_leave_user(cpu);
	cpu_fault(cpu, address, code);
	cpu_enter_user(cpu);
}

/* The other CPU makes a page read-only that this one writes. */
static void protect(void)
{
	start();
	store(AT);
	set(other, entry_of(root, AT, 0), FRAME | USER | PRESENT);
}

static void rights(void)
{
	protect();
	fault(AT, WRITES);
	expect_nothing("mprotect() has not returned");
	EXPECT("stale-capable", cpu->stale, 1);

	protect();
	cpu_enter_user(other);
	fault(AT, READS);
	expect_nothing("reading stays allowed");

	protect();
	cpu_enter_user(other);
	fault(AT, WRITES);
	expect("mprotect() has returned", 1, RIGHTS_WRITE);

	start();
	map(AT, FRAME, USER);
	load(AT);
	set(other, entry_of(root, AT, 0), FRAME | USER | RW | PRESENT);
	cpu_enter_user(other);
	store(AT);
	expect_nothing("a right that was given");

	start();
	cpu_access(cpu, KIND_FETCH, AT, 1);
	set(other, entry_of(root, AT, 0), FRAME | USER | RW | PRESENT | NX);
	cpu_enter_user(other);
	load(AT);
	expect_nothing("a load of a page without execution");
	fault(AT, READS | 1 << 4);
	expect("execution that was taken away", 1, RIGHTS_FETCH);

	start();
	store(AT);
	set(other, entry_of(root, AT, 1), (entry_of(root, AT, 0) & ~(PAGE - 1)) | USER | PRESENT);
	cpu_enter_user(other);
	fault(AT, WRITES);
	expect("rights of an upper entry", 1, RIGHTS_WRITE);

	start();
	load(AT);
	set(other, entry_of(root, AT, 0), FRAME | USER | RW | PRESENT | ACCESSED);
	load(AT);
	EXPECT("the accessed bit is no change", cpu->stale, 0);
	EXPECT("no unmap", world->unmaps, 0);
}

static void faults(void)
{
	start();
	load(AT);
	unmap(AT);
	fault(AT, READS);
	map(AT, SECOND, RW | USER);
	memory.bytes[SECOND] = 1;
	load(AT);
	expect_nothing("a fault drops the translation");

	start();
	load(AT);
	unmap(AT);
	fault(AT + PAGE, READS);
	map(AT, SECOND, RW | USER);
	memory.bytes[SECOND] = 1;
	load(AT);
	expect("not that of another page", 1, STALE_READ);

	/* The tables of user mode are others than those of the kernel. */
	start();
	store(AT);
	set(other, entry_of(root, AT, 0), FRAME | USER | PRESENT);
	cpu_enter_user(other);
	cpu_leave_user(cpu);
	cpu_load_root(cpu, new_table() | 2);
	cpu_fault(cpu, AT, WRITES);
	expect("page-table isolation", 1, RIGHTS_WRITE);
}

static void tables(void)
{
	uint64_t table;

	start();
	load(AT);
	table = entry_of(root, AT, 0) & ~(PAGE - 1);
	set(other, entry_of(root, AT, 1), 0);
	cpu_frames_freed(other, table >> 12, 0);
	expect("a table that is freed before a flush", 1, FREED_TABLE);

	start();
	load(AT);
	table = entry_of(root, AT, 0) & ~(PAGE - 1);
	set(other, entry_of(root, AT, 1), 0);
	cpu_invalidate_address(cpu, AT + 64 * REGION);
	cpu_frames_freed(other, table >> 12, 0);
	expect_nothing("INVLPG of any address drops all steps");

	start();
	load(AT);
	table = entry_of(root, AT, 0) & ~(PAGE - 1);
	cpu_load_root(cpu, root | 2);
	set(other, entry_of(root, AT, 1), 0);
	cpu_frames_freed(other, table >> 12, 0);
	expect_nothing("another PCID is loaded");
	cpu_load_root(cpu, root | 1 | KEEP);
	expect("it comes back with its steps", 1, FREED_TABLE);
}

static void large_pages(void)
{
	start();
	map(AT + REGION, LARGE_FRAME, RW | USER | LARGE);
	load(AT + REGION);
	set(other, entry_of(root, AT + REGION, 1), 0);
	cpu_frames_freed(other, (LARGE_FRAME >> 12) + 7, 0);
	expect("a part of a large page is freed", 1, FREED_WRITE);
	EXPECT("its address", world->cause[0].address, AT + REGION + 7 * PAGE);

	start();
	map(AT + REGION, LARGE_FRAME, RW | USER | LARGE);
	load(AT + REGION);
	set(other, entry_of(root, AT + REGION, 1), 0);
	cpu_invalidate_address(cpu, AT + REGION + 9 * PAGE);
	cpu_frames_freed(other, LARGE_FRAME >> 12, 9);
	expect_nothing("INVLPG of any of its addresses removes a large page");
}

/* Uses a page of the kernel, and returns whether it survives `flush`. */
static bool survives(uint64_t flags, void (*flush)(void))
{
	start();
	cpu_leave_user(cpu);
	map(KERNEL_AT, FRAME, RW | flags);
	load(KERNEL_AT);
	flush();
	set(other, entry_of(root, KERNEL_AT, 0), SECOND | RW | flags | PRESENT);
	store(KERNEL_AT);
	return world->causes;
}

static void reload(void)
{
	cpu_load_root(cpu, root | 1);
}

static void reload_and_keep(void)
{
	cpu->keeps = true;
	cpu_load_root(cpu, root | 1);
}

static void all_but_global(void)
{
	cpu_invalidate_all(cpu, false);
}

static void all(void)
{
	cpu_invalidate_all(cpu, true);
}

static void page(void)
{
	cpu_invalidate_address(cpu, KERNEL_AT);
}

static void page_of_space(void)
{
	cpu_invalidate_address_of(cpu, 1, KERNEL_AT);
}

static void space(void)
{
	cpu_invalidate_space(cpu, 1);
}

static void space_of_others(void)
{
	cpu_invalidate_space(cpu, 2);
}

static void other_cpu(void)
{
	cpu_invalidate_all(other, true);
}

static void invalidations(void)
{
	static const struct {
		const char *name;
		void (*flush)(void);
		bool keeps, keeps_global;
	} cases[] = {
		{ "a write of CR3", reload, false, true },
		{ "a write of CR3 that keeps", reload_and_keep, true, true },
		{ "INVPCID type 3", all_but_global, false, true },
		{ "INVPCID type 2", all, false, false },
		{ "INVLPG", page, false, false },
		{ "INVPCID type 0", page_of_space, false, true },
		{ "INVPCID type 1", space, false, true },
		{ "INVPCID type 1 of another PCID", space_of_others, true, true },
		{ "a flush of another CPU", other_cpu, true, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		EXPECT(cases[i].name, survives(0, cases[i].flush), cases[i].keeps);
		EXPECT(cases[i].name, survives(GLOBAL, cases[i].flush), cases[i].keeps_global);
	}
}

static void losses(void)
{
	start();
	map(AT + REGION, 0x40000000, RW | USER);
	set(cpu, entry_of(root, AT + 2 * REGION, 1), 0x7fff0000 | RW | USER | PRESENT);
	load(AT + 2 * REGION);
	EXPECT("a table that cannot be read", world->lost, 1);
}

/* What no kernel should write: nothing is made up, and nothing crashes. */
static void odd_tables(void)
{
	uint64_t entry;

	start();
	entry = entry_of(root, AT + 8 * REGION, 1);
	set(cpu, entry, (entry & ~(PAGE - 1)) | RW | USER | PRESENT);
	load(AT + 8 * REGION);
	set(cpu, entry, 0);
	load(AT + 8 * REGION);
	expect_nothing("a table that is its own table");

	start();
	set(cpu, root + (AT >> 39 & 511) * 8, root | RW | USER | PRESENT);
	load(AT);
	expect_nothing("a root that is its own table");

	start();
	set(cpu, entry_of(root, AT + REGION, 1), LARGE_FRAME | 0x1e000 | RW | USER | LARGE | PRESENT);
	load(AT + REGION);
	expect_nothing("a large page with reserved bits");

	start();
	set(cpu, entry_of(root, AT, 3), FRAME | RW | USER | LARGE | PRESENT);
	load(AT + PAGE);
	expect_nothing("a large page at a level that has none");

	start();
	map(AT + PAGE, 0xffffffffff000, RW | USER);
	load(AT + PAGE);
	store(AT + PAGE);
	unmap(AT + PAGE);
	EXPECT("a frame above all memory", world->causes, 0);

	start();
	cpu_load_root(cpu, 0xffffffffff000 | 1);
	load(AT);
	EXPECT("a root above all memory", world->causes, 0);
	EXPECT("is lost", world->lost, 1);
}

static void causes(void)
{
	start();
	for (int i = 0; i < 3; i++) {
		map(AT + i * PAGE, FRAME + i * PAGE, RW | USER);
		load(AT + i * PAGE);
		unmap(AT + i * PAGE);
		cpu_frames_freed(other, (FRAME >> 12) + i, 0);
	}
	EXPECT("one cause", world->causes, 1);
	EXPECT("its findings", world->cause[0].count, 3);
}

int main(void)
{
	owners();
	waiting();
	content();
	rights();
	faults();
	tables();
	large_pages();
	invalidations();
	losses();
	odd_tables();
	causes();
	return finish("adversary/world");
}
