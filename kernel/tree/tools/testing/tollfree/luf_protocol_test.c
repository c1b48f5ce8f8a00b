// SPDX-License-Identifier: GPL-2.0-only
/*
 * Exhaustive check of the protocol of lazy unmap flush.
 *
 * Unmappers, writers, flushers and a fault are lists of steps. One more CPU runs the
 * program that maps the pages: it fills its TLB at any time, handles interrupts and
 * switches to other programs and back. All interleavings of these steps are tried, with
 * plain stores delayed in store buffers as on x86 (TSO). In every reachable state an old
 * translation must not lead to
 *
 *   - a page that was freed to the allocator,
 *   - a page of a file that has newer content in another frame, or
 *   - a page at an address that is writable memory by now.
 *
 * No thread may wait forever. Then each barrier that the protocol requires
 * (include/linux/luf.h) is removed and each order reversed, one at a time: every such
 * mistake must be detected.
 */
#include "tap.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Page 0 is of a file, page 1 anonymous; one page table maps both. */
enum { PAGES = 2, GENERATIONS = 4, STEPS = 20 };

enum thread { UNMAP_0, UNMAP_1, WRITE_0, WRITE_1, FLUSH, FAULT, THREADS };

enum op {
	END,
	/* unmappers */
	LOCK,		/* the page-table lock */
	CHECK_WRITERS,	/* eager if there is a writer */
	PICK,		/* the open batch's generation */
	REF,		/* in flight in that batch, by a counter of its CPU's own */
	STILL_OPEN,	/* or else from PICK on once more */
	STAMP_MAPPING,
	STAMP_TABLE,
	BARRIER,
	RECHECK_WRITERS,
	CLEAR,		/* the PTE */
	BUMP,		/* the generation of the address space's TLB */
	MASK,		/* the CPUs that run it, into the batch */
	UNREF,
	FLUSH_EAGER,
	UNLOCK,
	REMOVE,		/* from the page cache, unless it is used */
	FLUSH_KEPT,
	FREE_NOW,	/* what was not lazy, or was kept for a while */
	POOL,
	/* writers */
	COUNT,		/* i_writecount */
	LOOK_MAPPING,	/* done if its generation is drained */
	LOOK_IF_FIRST,	/* wrong: only the first writer looks */
	GET,		/* the page, from the page cache */
	WRITE,
	PUT,
	/* flushers, and writers */
	PICK_OPEN,
	CLOSE,
	WAIT,		/* for those in flight on one CPU */
	WAIT_OTHER,	/* and on another one */
	COMPLETE,	/* from here on, a CPU that is up to date needs no interrupt */
	SEND,
	DRAINED,
	/* a fault that makes an entry writable */
	LOOK_TABLE,
	FLUSH_PLACE,
	SET,
};

enum pte { NONE, READ_ONLY, WRITABLE };
enum frame { CACHED, FROZEN, POOLED, FREE };

/* State of the reading CPU. */
enum cpu {
	RUNS,
	IRQ_SEQUENCE, IRQ_GENERATION, IRQ_COMPARE,
	OUT_SEQUENCE, OUT_LEAVE,
	AWAY,
	IN_SEQUENCE, IN_GENERATION, IN_COMPARE,
};

struct state {
	u8 pc[THREADS];
	u8 generation[THREADS];
	u8 eager, kept, holds, sent;	/* a bit a thread */
	u8 pte[PAGES];
	u8 tlb[PAGES];			/* what the PTE was */
	u8 frame[PAGES];
	u8 pooled_in[PAGES];
	u8 used;			/* references to page 0 */
	u8 rewritten;			/* page 0, in another frame */
	u8 lock;
	u8 mapping, table;		/* stamps */
	u8 stored[PAGES];		/* stamps in the store buffer of an unmapper */
	u8 writers;
	u8 open;
	u8 in_flight[PAGES][GENERATIONS]; /* each unmapper is on a CPU of its own */
	u8 masks, flushed;		/* a bit a generation */
	u8 sequence, completed[GENERATIONS];
	u8 tlb_generation;
	/* the reading CPU */
	u8 cpu, interrupted, is_member, is_lazy, local_generation, since;
	u8 seen_sequence, seen_generation, switches, interrupts;
};

struct plan {
	u8 ops[THREADS][STEPS];
	u8 max_switches;
	bool is_lazy;			/* kernel threads borrow the address space */
	bool releases_early;		/* wrong: pool pages before their flush */
	bool generation_first;		/* wrong: since is read after tlb_generation */
	bool marks_target;		/* wrong: the flusher records that the CPU has flushed */
	bool joins_late;		/* wrong: back, for flushers, after the comparison */
};

static const u8 unmapper[STEPS] = {
	LOCK, CHECK_WRITERS, PICK, REF, STILL_OPEN, STAMP_MAPPING, STAMP_TABLE, BARRIER,
	RECHECK_WRITERS, CLEAR, BUMP, MASK, UNREF, FLUSH_EAGER, UNLOCK,
	REMOVE, FLUSH_KEPT, FREE_NOW, POOL,
};

static const u8 writer[STEPS] = {
	COUNT, LOOK_MAPPING, CLOSE, WAIT, WAIT_OTHER, COMPLETE, SEND, DRAINED, GET, WRITE, PUT,
};

static const u8 reader[STEPS] = { GET, PUT };

static const u8 flusher[STEPS] = {
	PICK_OPEN, CLOSE, WAIT, WAIT_OTHER, COMPLETE, SEND, DRAINED,
};

static const u8 fault[STEPS] = { LOCK, LOOK_TABLE, FLUSH_PLACE, SET, UNLOCK };

static struct plan plan;

/* ---- one step ---- */

static bool is_drained(const struct state *s, u8 generation)
{
	for (u8 g = 1; g <= generation; g++)
		if (!(s->flushed & 1 << g))
			return false;
	return true;
}

static u8 page_of(enum thread t)
{
	return t == UNMAP_1;
}

static int place(enum thread t, enum op what)
{
	for (int i = 0; i < STEPS; i++)
		if (plan.ops[t][i] == what)
			return i;
	assert(!"no such step");
	return -1;
}

static void jump(struct state *s, enum thread t, enum op to)
{
	while (plan.ops[t][s->pc[t]] != to && plan.ops[t][s->pc[t]] != END)
		s->pc[t]++;
}

static bool has(u8 bits, enum thread t)
{
	return bits & 1 << t;
}

/* Make the reading CPU flush if necessary, and wait. Return: false if not done yet. */
static bool interrupt(struct state *s, enum thread t, bool must)
{
	if (!has(s->sent, t)) {
		if (must) {
			s->sent |= 1 << t;
			s->interrupts |= 1 << t;
		}
		return !must;
	}
	if (has(s->interrupts, t))
		return false;
	s->sent &= ~(1 << t);
	return true;
}

/* A CPU that runs a kernel thread checks when it switches back. */
static bool is_concerned(const struct state *s)
{
	return s->is_member && !s->is_lazy;
}

/* Whether a drain up to a generation concerns the reading CPU. */
static bool must_send(const struct state *s, u8 generation)
{
	u8 needed = 0;

	for (u8 g = 1; g <= generation; g++)
		if (!(s->flushed & 1 << g) && s->masks & 1 << g)
			needed = s->completed[g] > needed ? s->completed[g] : needed;
	return needed && s->since < needed && !s->is_lazy;
}

static bool in_flight(const struct state *s, u8 cpu, u8 generation)
{
	for (u8 g = 1; g <= generation; g++)
		if (s->in_flight[cpu][g])
			return true;
	return false;
}

/* Do one step of a thread. Return: false if it has to wait, or is done. */
static bool step(struct state *s, enum thread t)
{
	u8 p = page_of(t), *g = &s->generation[t];
	enum op op = plan.ops[t][s->pc[t]];
	bool is_eager = has(s->eager, t), is_kept = has(s->kept, t);

	/* Locked instructions, and the unlock after them, drain the store buffer. */
	switch (op) {
	case BARRIER: case CLEAR: case BUMP: case MASK: case UNREF: case UNLOCK:
		if (t <= UNMAP_1 && s->stored[t])
			return false;
		break;
	default:
		break;
	}
	switch (op) {
	case END:
		return false;
	case LOCK:
		if (s->lock)
			return false;
		s->lock = 1;
		break;
	case CHECK_WRITERS: case RECHECK_WRITERS:
		if (p == 0 && s->writers)
			s->eager |= 1 << t;
		break;
	case PICK: case PICK_OPEN:
		*g = s->open;
		assert(*g < GENERATIONS);
		break;
	case REF:
		s->in_flight[p][*g]++;
		break;
	case STILL_OPEN:
		if (s->open != *g) {
			s->in_flight[p][*g] = 0;
			s->pc[t] = place(t, PICK);
			return true;
		}
		break;
	case STAMP_MAPPING:
		s->stored[t] |= p == 0;
		break;
	case STAMP_TABLE:
		s->stored[t] |= 2;
		break;
	case BARRIER:
		break;
	case CLEAR:
		s->pte[p] = NONE;
		break;
	case BUMP:
		s->tlb_generation++;
		break;
	case MASK:
		if (s->is_member && !is_eager)
			s->masks |= 1 << *g;
		break;
	case UNREF:
		s->in_flight[p][*g] = 0;
		break;
	case FLUSH_EAGER:
		if (!interrupt(s, t, is_eager && is_concerned(s)))
			return true;
		break;
	case UNLOCK:
		s->lock = 0;
		break;
	case REMOVE:
		if (p == 0 && s->used)
			s->kept |= 1 << t;
		else
			s->frame[p] = FROZEN;
		break;
	case FLUSH_KEPT:
		if (!interrupt(s, t, is_kept && !is_eager && s->masks & 1 << *g && !s->is_lazy))
			return true;
		break;
	case FREE_NOW:
		if (is_kept && s->used)
			return false;
		if (is_kept || is_eager) {
			s->frame[p] = FREE;
			jump(s, t, END);
			return true;
		}
		break;
	case POOL:
		s->frame[p] = POOLED;
		s->pooled_in[p] = *g;
		break;
	case COUNT:
		s->writers++;
		break;
	case LOOK_MAPPING: case LOOK_IF_FIRST:
		*g = s->mapping;
		if (is_drained(s, *g) || (op == LOOK_IF_FIRST && s->writers > 1)) {
			jump(s, t, GET);
			return true;
		}
		break;
	case CLOSE:
		if (s->open <= *g)
			s->open = *g + 1;
		break;
	case WAIT: case WAIT_OTHER:
		if (in_flight(s, op == WAIT_OTHER, *g))
			return false;
		break;
	case COMPLETE:
		for (u8 i = 1; i <= *g; i++)
			if (!s->completed[i])
				s->completed[i] = ++s->sequence;
		break;
	case SEND:
		if (!interrupt(s, t, must_send(s, *g)))
			return true;
		if (plan.marks_target)
			s->since = s->sequence;
		break;
	case DRAINED:
		for (u8 i = 1; i <= *g; i++)
			s->flushed |= 1 << i;
		break;
	case GET:
		if (s->frame[0] == CACHED) {
			s->used++;
			s->holds |= 1 << t;
		}
		break;
	case WRITE:
		if (!has(s->holds, t))
			s->rewritten = 1;
		break;
	case PUT:
		if (has(s->holds, t))
			s->used--;
		break;
	case LOOK_TABLE:
		/* A page that still exists is mapped again, or waited for. */
		if (s->pte[0] != NONE || s->frame[0] == CACHED) {
			jump(s, t, UNLOCK);
			return true;
		}
		if (is_drained(s, s->table))
			s->eager |= 1 << t;
		break;
	case FLUSH_PLACE:
		if (!has(s->sent, t) && !is_eager)
			s->tlb_generation++;
		if (!interrupt(s, t, !is_eager && is_concerned(s)))
			return true;
		break;
	case SET:
		/* All that the table maps was flushed. */
		s->table = 0;
		s->pte[0] = WRITABLE;
		break;
	}
	s->pc[t]++;
	return true;
}

/* A stamp leaves a store buffer, the older one first. Stamps only grow. */
static bool store(struct state *s, enum thread t)
{
	u8 *stamp;
	u8 bit = s->stored[t] & 1 ? 1 : 2;

	if (!s->stored[t])
		return false;
	stamp = bit == 1 ? &s->mapping : &s->table;
	if (*stamp < s->generation[t])
		*stamp = s->generation[t];
	s->stored[t] &= ~bit;
	return true;
}

static void flush_own(struct state *s)
{
	if (s->local_generation < s->seen_generation) {
		memset(s->tlb, NONE, sizeof(s->tlb));
		s->local_generation = s->seen_generation;
	}
	s->since = s->seen_sequence;
}

static u8 first_bit(u8 bits)
{
	return bits & -bits;
}

/* Next steps of the reading CPU; several may be possible. */
enum { CPU_FILL_0, CPU_FILL_1, CPU_GO_ON, CPU_SWITCH, CPU_CHOICES };

static bool cpu_goes_on(struct state *s)
{
	bool swaps = plan.generation_first;

	switch (s->cpu) {
	case RUNS: case AWAY:
		if (!s->interrupts)
			return false;
		s->interrupted = s->cpu;
		s->cpu = IRQ_SEQUENCE;
		return true;
	case IRQ_SEQUENCE: case IN_SEQUENCE:
		if (swaps)
			s->seen_generation = s->tlb_generation;
		else
			s->seen_sequence = s->sequence;
		s->cpu++;
		return true;
	case IRQ_GENERATION: case IN_GENERATION:
		if (swaps)
			s->seen_sequence = s->sequence;
		else
			s->seen_generation = s->tlb_generation;
		s->cpu++;
		return true;
	case IRQ_COMPARE:
		if (s->interrupted == RUNS)
			flush_own(s);
		else
			s->since = s->seen_sequence;
		s->interrupts &= ~first_bit(s->interrupts);
		s->cpu = s->interrupted;
		s->interrupted = 0;
		s->seen_sequence = 0;
		s->seen_generation = 0;
		return true;
	case OUT_SEQUENCE:
		s->seen_sequence = s->sequence;
		s->cpu++;
		return true;
	case OUT_LEAVE:
		s->is_lazy = plan.is_lazy;
		s->is_member = plan.is_lazy;
		s->since = s->seen_sequence;
		s->seen_sequence = 0;
		s->cpu = AWAY;
		return true;
	case IN_COMPARE:
		flush_own(s);
		s->is_member = 1;
		s->is_lazy = 0;
		s->seen_sequence = 0;
		s->seen_generation = 0;
		s->cpu = RUNS;
		return true;
	}
	return false;
}

/* Whether the tables of the address space are in use, at least by speculation. */
static bool is_loaded(const struct state *s)
{
	bool is_away = s->cpu >= AWAY ||
		       (s->cpu > RUNS && s->cpu <= IRQ_COMPARE && s->interrupted == AWAY);

	return plan.is_lazy || !is_away;
}

static bool cpu_step(struct state *s, int choice)
{
	switch (choice) {
	case CPU_FILL_0: case CPU_FILL_1:
		if (!is_loaded(s))
			return false;
		if (s->tlb[choice] != NONE || s->pte[choice] == NONE)
			return false;
		s->tlb[choice] = s->pte[choice];
		return true;
	case CPU_GO_ON:
		return cpu_goes_on(s);
	case CPU_SWITCH:
		if ((s->cpu != RUNS && s->cpu != AWAY) || s->switches == plan.max_switches)
			return false;
		s->switches++;
		if (s->cpu == RUNS) {
			s->cpu = OUT_SEQUENCE;
		} else {
			if (!plan.joins_late) {
				s->is_member = 1;
				s->is_lazy = 0;
			}
			s->cpu = IN_SEQUENCE;
		}
		return true;
	}
	return false;
}

/* A drained batch's pages are released. */
static bool release(struct state *s, u8 p)
{
	if (s->frame[p] != POOLED)
		return false;
	if (!is_drained(s, s->pooled_in[p]) && !plan.releases_early)
		return false;
	s->frame[p] = FREE;
	return true;
}

/* ---- invariants ---- */

static const char *violation(const struct state *s)
{
	bool runs = s->cpu == RUNS;

	for (int p = 0; p < PAGES; p++)
		if (runs && s->tlb[p] == READ_ONLY && s->frame[p] == FREE)
			return "a free page can be read";
	if (runs && s->tlb[0] == READ_ONLY && s->frame[0] != CACHED && s->rewritten)
		return "a file's old content can be read";
	if (runs && s->tlb[0] == READ_ONLY && s->pte[0] == WRITABLE)
		return "a place has an old and a writable translation";
	return NULL;
}

static bool is_done(const struct state *s)
{
	for (int t = 0; t < THREADS; t++)
		if (plan.ops[t][s->pc[t]] != END)
			return false;
	return true;
}

/* ---- the search ---- */

enum { TABLE_BITS = 22 };

static struct state *seen;
static u8 *is_used;
static u32 *todo, found, pending;

/* Record a new state. */
static void visit(const struct state *s)
{
	u64 hash = 0xcbf29ce484222325ULL;
	u32 at;

	/* FNV-1a (Fowler, Noll, Vo) */
	for (size_t i = 0; i < sizeof(*s); i++)
		hash = (hash ^ ((const u8 *)s)[i]) * 0x100000001b3ULL;
	for (at = hash >> (64 - TABLE_BITS); is_used[at]; at = (at + 1) % (1U << TABLE_BITS))
		if (!memcmp(&seen[at], s, sizeof(*s)))
			return;
	assert(++found < (1U << TABLE_BITS) * 3 / 4);
	is_used[at] = 1;
	seen[at] = *s;
	todo[pending++] = at;
}

/* Visit all successors of a state. Return: false if there is none. */
static bool follow(const struct state *from)
{
	bool any = false;
	struct state s;

#define TRY(does)						\
	do {							\
		s = *from;					\
		if (does) {					\
			any = true;				\
			if (memcmp(&s, from, sizeof(s)))	\
				visit(&s);			\
		}						\
	} while (0)

	for (int t = 0; t < THREADS; t++)
		TRY(step(&s, t));
	for (int t = UNMAP_0; t <= UNMAP_1; t++)
		TRY(store(&s, t));
	for (int choice = 0; choice < CPU_CHOICES; choice++)
		TRY(cpu_step(&s, choice));
	for (int p = 0; p < PAGES; p++)
		TRY(release(&s, p));
	return any;
}

/* Return: error of the plan; NULL if there is none. */
static const char *search(void)
{
	struct state s = {
		.pte = { READ_ONLY, READ_ONLY }, .open = 1, .cpu = RUNS, .is_member = 1,
	};
	const char *why = NULL;

	memset(is_used, 0, 1U << TABLE_BITS);
	found = 0;
	pending = 0;
	visit(&s);
	while (pending && !why) {
		s = seen[todo[--pending]];
		why = violation(&s);
		if (!why && !follow(&s) && !is_done(&s))
			why = "a thread waits forever";
	}
	return why;
}

/* ---- plans ---- */

static void begin(u8 max_switches)
{
	memset(&plan, 0, sizeof(plan));
	plan.max_switches = max_switches;
}

static void add(enum thread t, const u8 *ops)
{
	memcpy(plan.ops[t], ops, STEPS);
}

static void drop(enum thread t, enum op what)
{
	int at = place(t, what);

	memmove(&plan.ops[t][at], &plan.ops[t][at + 1], STEPS - at - 1);
}

/* Move a step to just before another one. */
static void move(enum thread t, enum op what, enum op before)
{
	int at;

	drop(t, what);
	at = place(t, before);
	memmove(&plan.ops[t][at + 1], &plan.ops[t][at], STEPS - at - 1);
	plan.ops[t][at] = what;
}

static void replace(enum thread t, enum op what, enum op by)
{
	plan.ops[t][place(t, what)] = by;
}

static void look_if_first(void)
{
	replace(WRITE_0, LOOK_MAPPING, LOOK_IF_FIRST);
	replace(WRITE_1, LOOK_MAPPING, LOOK_IF_FIRST);
}

static void with_drain(void)
{
	begin(2);
	add(UNMAP_0, unmapper);
	add(FLUSH, flusher);
}

static void lazy_with_drain(void)
{
	with_drain();
	plan.is_lazy = true;
}

static void two_with_drain(void)
{
	begin(1);
	add(UNMAP_0, unmapper);
	add(UNMAP_1, unmapper);
	add(FLUSH, flusher);
}

static void with_write(void)
{
	begin(1);
	add(UNMAP_0, unmapper);
	add(WRITE_0, writer);
	add(FLUSH, flusher);
}

static void with_two_writes(void)
{
	begin(0);
	add(UNMAP_0, unmapper);
	add(WRITE_0, writer);
	add(WRITE_1, writer);
}

static void with_read(void)
{
	begin(1);
	add(UNMAP_0, unmapper);
	add(WRITE_0, reader);
	add(FLUSH, flusher);
}

static void two_with_write(void)
{
	begin(0);
	add(UNMAP_0, unmapper);
	add(UNMAP_1, unmapper);
	add(WRITE_0, writer);
	add(FLUSH, flusher);
}

static void with_fault(void)
{
	begin(1);
	add(UNMAP_0, unmapper);
	add(FAULT, fault);
	add(FLUSH, flusher);
}

static void is_sound(void)
{
	const char *why = search();

	printf("# %u states\n", found);
	if (why)
		printf("# %s\n", why);
	EXPECT_EQ(!why, true);
}

/* Check that the search finds exactly this. */
static void is_found(const char *expected)
{
	const char *why = search();

	if (!why || strcmp(why, expected)) {
		printf("# found: %s\n", why ? why : "nothing");
		tap_ok = false;
	}
}

#define READS_FREE "a free page can be read"
#define READS_OLD "a file's old content can be read"
#define READS_BOTH "a place has an old and a writable translation"

#define SOUND(setting)					\
	static void setting##_is_sound(void)		\
	{						\
		setting();				\
		is_sound();				\
	}

#define WRONG(name, setting, change, what)		\
	static void name(void)				\
	{						\
		setting();				\
		change;					\
		is_found(what);				\
	}

SOUND(with_drain)
SOUND(lazy_with_drain)
SOUND(two_with_drain)
SOUND(with_write)
SOUND(with_two_writes)
SOUND(with_read)
SOUND(two_with_write)
SOUND(with_fault)

WRONG(pages_released_before_their_flush, with_drain, plan.releases_early = true, READS_FREE)
WRONG(no_reference_on_the_batch, with_drain, drop(UNMAP_0, REF), READS_FREE)
WRONG(no_second_look_at_the_batch, with_drain, drop(UNMAP_0, STILL_OPEN), READS_FREE)
WRONG(second_look_before_the_reference, with_drain, move(UNMAP_0, STILL_OPEN, REF), READS_FREE)
WRONG(flusher_waits_before_it_closes, with_drain, move(FLUSH, WAIT, CLOSE), READS_FREE)
WRONG(flusher_waits_for_one_cpu, two_with_drain, drop(FLUSH, WAIT_OTHER), READS_FREE)
WRONG(reference_dropped_before_the_mask, with_drain, move(UNMAP_0, UNREF, MASK), READS_FREE)
WRONG(mask_read_before_the_pte_is_cleared, with_drain, move(UNMAP_0, MASK, CLEAR), READS_FREE)
WRONG(tlb_generation_not_raised, with_drain, drop(UNMAP_0, BUMP), READS_FREE)
WRONG(tlb_generation_raised_before_the_clear, with_drain, move(UNMAP_0, BUMP, CLEAR), READS_FREE)
WRONG(tlb_generation_raised_after_the_mask, with_drain, move(UNMAP_0, BUMP, UNREF), READS_FREE)
WRONG(flusher_does_not_wait, with_drain, drop(FLUSH, WAIT), READS_FREE)
WRONG(flusher_does_not_close, two_with_drain, drop(FLUSH, CLOSE), READS_FREE)
WRONG(flusher_sends_nothing, with_drain, drop(FLUSH, SEND), READS_FREE)
WRONG(drained_before_it_is_sent, with_drain, move(FLUSH, DRAINED, SEND), READS_FREE)
WRONG(complete_before_the_wait, with_drain, move(FLUSH, COMPLETE, WAIT), READS_FREE)
WRONG(since_is_read_after_the_generation, with_drain, plan.generation_first = true, READS_FREE)
WRONG(a_target_is_marked_by_who_asks, two_with_write, plan.marks_target = true, READS_FREE)
WRONG(a_member_after_the_comparison, with_drain, plan.joins_late = true, READS_FREE)
WRONG(lazy_until_after_the_comparison, lazy_with_drain, plan.joins_late = true, READS_FREE)
WRONG(a_kept_page_is_not_flushed, with_read, drop(UNMAP_0, FLUSH_KEPT), READS_FREE)

WRONG(no_barrier_after_the_stamp, with_write, drop(UNMAP_0, BARRIER), READS_OLD)
WRONG(no_second_look_at_the_writers, with_write, drop(UNMAP_0, RECHECK_WRITERS), READS_OLD)
WRONG(stamp_after_the_second_look, with_write, move(UNMAP_0, STAMP_MAPPING, CLEAR), READS_OLD)
WRONG(mapping_not_stamped, with_write, drop(UNMAP_0, STAMP_MAPPING), READS_OLD)
WRONG(writer_looks_before_it_counts, with_write, move(WRITE_0, LOOK_MAPPING, COUNT), READS_OLD)
WRONG(writer_does_not_wait, with_write, drop(WRITE_0, WAIT), READS_FREE)
WRONG(writer_does_not_close, two_with_write, drop(WRITE_0, CLOSE), READS_FREE)
WRONG(writer_sends_nothing, with_two_writes, drop(WRITE_0, SEND), READS_FREE)
WRONG(only_the_first_writer_looks, with_two_writes, look_if_first(), READS_OLD)

WRONG(table_not_stamped, with_fault, drop(UNMAP_0, STAMP_TABLE), READS_BOTH)
WRONG(place_is_not_flushed, with_fault, drop(FAULT, FLUSH_PLACE), READS_BOTH)
WRONG(place_is_flushed_after_the_fault, with_fault, move(FAULT, FLUSH_PLACE, UNLOCK), READS_BOTH)

int main(void)
{
	seen = malloc(sizeof(*seen) << TABLE_BITS);
	is_used = malloc(1U << TABLE_BITS);
	todo = malloc(sizeof(*todo) << TABLE_BITS);
	assert(seen && is_used && todo);
	RUN(with_drain_is_sound);
	RUN(lazy_with_drain_is_sound);
	RUN(two_with_drain_is_sound);
	RUN(with_write_is_sound);
	RUN(with_two_writes_is_sound);
	RUN(with_read_is_sound);
	RUN(two_with_write_is_sound);
	RUN(with_fault_is_sound);
	RUN(pages_released_before_their_flush);
	RUN(no_reference_on_the_batch);
	RUN(no_second_look_at_the_batch);
	RUN(second_look_before_the_reference);
	RUN(flusher_waits_before_it_closes);
	RUN(flusher_waits_for_one_cpu);
	RUN(reference_dropped_before_the_mask);
	RUN(mask_read_before_the_pte_is_cleared);
	RUN(tlb_generation_not_raised);
	RUN(tlb_generation_raised_before_the_clear);
	RUN(tlb_generation_raised_after_the_mask);
	RUN(flusher_does_not_wait);
	RUN(flusher_does_not_close);
	RUN(flusher_sends_nothing);
	RUN(drained_before_it_is_sent);
	RUN(complete_before_the_wait);
	RUN(since_is_read_after_the_generation);
	RUN(a_target_is_marked_by_who_asks);
	RUN(a_member_after_the_comparison);
	RUN(lazy_until_after_the_comparison);
	RUN(a_kept_page_is_not_flushed);
	RUN(no_barrier_after_the_stamp);
	RUN(no_second_look_at_the_writers);
	RUN(stamp_after_the_second_look);
	RUN(mapping_not_stamped);
	RUN(writer_looks_before_it_counts);
	RUN(writer_does_not_wait);
	RUN(writer_does_not_close);
	RUN(writer_sends_nothing);
	RUN(only_the_first_writer_looks);
	RUN(table_not_stamped);
	RUN(place_is_not_flushed);
	RUN(place_is_flushed_after_the_fault);
	return tap_end();
}
