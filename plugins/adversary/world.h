/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The adversarial TLB: the worst hardware that the x86-64 architecture allows. Independent
 * of QEMU.
 *
 * A translation that a CPU has used stays usable until an instruction invalidates it (Intel
 * SDM volume 3, 4.10.4: INVLPG, INVPCID, writes of CR3 and CR4); nothing is ever evicted. The
 * same holds for entries of the paging-structure caches. A page fault invalidates what it used.
 * A report is made where hardware that still has an old translation could be hurt:
 *
 * - stale write: a store is possible through an old writable translation of a frame that was
 *   freed, has another owner, or has been replaced by another frame at that address; or of an
 *   address that became read-only or unmapped, after the task that changed it has returned to
 *   user mode.
 * - stale read, stale fetch: the frame has another owner, or replaced frames differ in the
 *   bytes that are read.
 * - freed table: a table is freed while a CPU could still walk through it.
 *
 * The owner of a frame is checked without an access: user mode may access any address at any
 * time, so a translation that user mode of a CPU could use is wrong as soon as its frame has
 * another owner. While the CPU is in the kernel, or its PCID is not the loaded one, the check
 * waits: the kernel may still flush before user mode goes on.
 *
 * Assumptions: an invalidation of an address removes the whole page that contains it, of the
 * size at which it was filled. A translation is cached only if it was used.
 */
#ifndef TOLL_WORLD_H
#define TOLL_WORLD_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { WORLD_CPUS = 64, CALLS = 12, NAME_LENGTH = 16 };
/* PCIDs, and one more space for global translations. */
enum { GLOBAL_SPACE = 1 << 12, SPACES };

enum kind { KIND_LOAD, KIND_STORE, KIND_FETCH, KINDS };

/* Where something happened. */
struct event {
	uint64_t time; /* instructions that this CPU has run */
	uint64_t task; /* tgid << 32 | pid */
	char name[NAME_LENGTH];
	unsigned int cpu;
	unsigned int count;
	uint64_t calls[CALLS]; /* words of the stack that may be return addresses */
};

/* A task, by how often it has returned to user mode. */
struct task {
	uint64_t id;
	uint64_t returns;
	char name[NAME_LENGTH];
	struct task *next;
};

/* The last time that a present entry of a table was cleared or changed. */
struct change {
	uint64_t number; /* of all changes */
	uint64_t old, new;
	struct event event;
	const struct task *task;
	uint64_t returns; /* of the task at that time */
};

/* A page table: a copy of its entries, kept equal by the guest's stores. */
struct table {
	uint64_t entries[512];
	struct change *changes[512];
};

struct translation;
struct step;

struct frame {
	/* When it got its owner, and when it was freed, by the world's clock. */
	uint64_t taken_at, freed_at;
	struct table *table;
	/* Translations for user mode (of a large page: at its first frame), and steps of walks. */
	struct translation *users;
	struct step *steps;
	struct event *taken, *freed;
};

/* A translation that a CPU may have. */
struct translation {
	uint64_t page; /* first address */
	uint64_t frame;
	uint64_t path[5]; /* physical addresses of the entries that it comes from, the last one first */
	uint64_t change;  /* number of changes when it was last known to be right */
	uint64_t age;	/* of its space at the CPU; another one: invalidated */
	struct cpu *cpu;
	struct translation *next, *next_user, *next_suspect;
	struct event made;
	uint64_t made_at; /* when it was last known to be right */
	uint64_t suspected; /* the frame of it that changed */
	uint16_t space;
	uint8_t shift;
	bool is_writable, is_user, is_executable;
	bool is_suspect, was_reported;
};

/* An entry of the paging-structure caches: the table that maps a region. */
struct step {
	uint64_t region; /* first address */
	uint64_t table;
	uint64_t age;
	struct cpu *cpu;
	struct step *next, *next_of_table, *next_suspect;
	uint64_t made_at;
	uint16_t space;
	uint8_t shift; /* log2 of the region's size */
	bool is_suspect;
};

/* Pages that were found to have no older translation: only for speed. */
enum { SETTLED = 1 << 12 };

struct settled {
	uint64_t page, stamp;
};

enum { BUCKETS = 1 << 16 };

struct cpu {
	struct world *world;
	void *context; /* for reading the guest's memory */
	unsigned int index;
	uint64_t root, user_root; /* now, and when user mode ran last */
	uint16_t pcid, user_pcid;
	bool keeps; /* the next write of CR3 keeps translations */
	bool is_user;
	struct task *task;
	uint64_t instructions;
	/* Changes whenever settled pages may not be any more. */
	uint64_t stamp;
	struct settled settled[KINDS][SETTLED];
	uint64_t ages[SPACES], step_ages[SPACES];
	struct translation *translations[BUCKETS];
	struct step *steps[BUCKETS];
	/* Those to look at when the CPU returns to user mode, or loads their PCID. */
	struct translation *suspects;
	struct step *suspect_steps;
	uint64_t checked, stale, legal;
};

/* Reads physical memory of the guest; false if there is none. */
typedef bool (*read_physical)(void *context, uint64_t address, void *to, size_t length);
/* Fills `calls`: return addresses on the stack of the running CPU. */
typedef unsigned int (*read_calls)(void *context, uint64_t *calls);

enum finding {
	STALE_WRITE,
	STALE_READ,
	STALE_FETCH,
	OWNER_READ,
	OWNER_WRITE,
	FREED_WRITE,
	RIGHTS_WRITE,
	RIGHTS_FETCH,
	FREED_TABLE,
	FINDINGS,
};

enum { CAUSES = 256 };

/* Reports with one cause: the first one, and their number. */
struct cause {
	enum finding finding;
	uint64_t key;
	uint64_t count;
	uint64_t address;
	enum kind kind;
	bool is_speculative; /* no access has used it yet */
	bool is_pending;     /* the operation that made the translation old has not ended */
	unsigned int cpu;
	uint16_t space;
	struct event now, made;
	bool has_change, has_taken, has_freed;
	struct change change;
	struct event taken, freed;
	uint64_t frame, now_frame;
};

enum { CHUNK_FRAMES = 1 << 15, CHUNKS = 1 << 10, TASK_BUCKETS = 1 << 10 };

struct world {
	pthread_mutex_t lock;
	read_physical read;
	read_calls calls;
	int levels;
	/* Set by the first section, and never cleared. */
	bool is_running;
	unsigned int cpus;
	struct cpu *cpu[WORLD_CPUS];
	struct frame *chunks[CHUNKS];
	struct task *tasks[TASK_BUCKETS];
	uint64_t clock;	  /* counts changes of owners */
	uint64_t changes; /* of entries */
	uint64_t unmaps, taken, freed, planted, lost, flushes;
	struct timespec began, found; /* the first section, the first finding */
	unsigned int causes;
	struct cause cause[CAUSES];
};

/* --- set-up; NULL if memory is short --- */

struct world *world_new(int levels, read_physical read, read_calls calls);
struct cpu *world_cpu(struct world *world, unsigned int index, void *context);

/* Checking starts. */
void world_begin(struct world *world);

/* --- what happens in the guest --- */

/* An access has succeeded. */
void cpu_access_slowly(struct cpu *cpu, enum kind kind, uint64_t address, unsigned int size);

/* Whether a page is known to have no other translation. */
static inline bool cpu_is_settled(const struct cpu *cpu, enum kind kind, uint64_t address)
{
	const struct settled *settled = &cpu->settled[kind][address >> 12 & (SETTLED - 1)];

	return settled->page == address >> 12 &&
	       settled->stamp == __atomic_load_n(&cpu->stamp, __ATOMIC_RELAXED);
}

/* An access within a page. */
static inline void cpu_access(struct cpu *cpu, enum kind kind, uint64_t address, unsigned int size)
{
	cpu->checked++;
	if (!cpu_is_settled(cpu, kind, address))
		cpu_access_slowly(cpu, kind, address, size);
}

/* A page fault begins; `code` is the error code of the exception. */
void cpu_fault(struct cpu *cpu, uint64_t address, uint64_t code);
/* Whether a frame is a known page table, so that stores to it must be followed. */
bool world_is_table(const struct world *world, uint64_t physical);
void cpu_store_to_table(struct cpu *cpu, uint64_t physical, unsigned int size);
void cpu_invalidate_address(struct cpu *cpu, uint64_t address);
/* A PCID's translation of an address (INVPCID type 0), all of a PCID (type 1). */
void cpu_invalidate_address_of(struct cpu *cpu, uint16_t space, uint64_t address);
void cpu_invalidate_space(struct cpu *cpu, uint16_t space);
/* All, with or without global translations (types 2 and 3, CR4). */
void cpu_invalidate_all(struct cpu *cpu, bool with_global);
void cpu_load_root(struct cpu *cpu, uint64_t cr3);
/* The CPU's next instruction is one of user mode, or of the kernel. */
void cpu_enter_user(struct cpu *cpu);
void cpu_leave_user(struct cpu *cpu);
void cpu_run_task(struct cpu *cpu, uint64_t id, const char *name);
void cpu_frames_taken(struct cpu *cpu, uint64_t number, unsigned int order);
void cpu_frames_freed(struct cpu *cpu, uint64_t number, unsigned int order);

/* --- parts; with the lock held --- */

struct frame *world_frame(struct world *world, uint64_t physical);
/* Here and now; the calls are costly, and known only where the plugin may read registers. */
struct event cpu_event(struct cpu *cpu);
struct event cpu_event_without_calls(const struct cpu *cpu);

/* The mapping of an address, and the tables on the way. */
struct leaf {
	bool is_present, is_writable, is_user, is_executable, is_global;
	uint8_t shift;
	uint64_t frame, path[5];
	unsigned int count;
	struct {
		uint64_t table;
		uint8_t shift;
	} steps[5];
};

struct leaf cpu_walk(struct cpu *cpu, uint64_t root, uint64_t address);
/* The copy of a table, which is made at its first use; NULL if it cannot be read. */
struct table *world_table(struct cpu *cpu, uint64_t physical);
/* The last change that made a translation old; NULL if it is not known any more. */
const struct change *world_change(struct world *world, const struct translation *old);
bool world_is_closed(const struct change *change);
void table_free(struct frame *frame);

void cpu_forget_space(struct cpu *cpu, uint16_t space);
void cpu_forget_faulting(struct cpu *cpu, uint16_t space, uint64_t address);

bool translation_lives(const struct translation *it);
/* Whether a translation is the one that the tables have now. */
bool translation_is(const struct translation *it, const struct leaf *leaf);
bool step_lives(const struct step *it);
struct translation **cpu_translations(struct cpu *cpu, uint16_t space, uint64_t page, uint8_t shift);
bool cpu_add_translation(struct cpu *cpu, uint16_t space, uint64_t address, const struct leaf *leaf);
void cpu_add_steps(struct cpu *cpu, uint64_t address, const struct leaf *leaf);

void world_report(struct cpu *cpu, enum finding finding, const struct translation *old,
		  uint64_t address, enum kind kind, const struct leaf *now);
void world_report_table(struct cpu *cpu, const struct step *step);
bool world_write(const struct world *world, FILE *file);

#endif
