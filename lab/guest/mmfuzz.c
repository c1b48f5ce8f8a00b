// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Random system calls of memory management, by several threads on one arena.
 *
 *     mmfuzz SEED OPERATIONS [THREADS] [--only LIST | --drop LIST | --replay FILE]
 *
 * Operation N is done by thread N modulo THREADS, and follows from SEED and N alone: with --only just the operations
 * of the list (such as 3-17,40) are done, each as it was in the whole run, with --drop all but those. FILE holds a
 * list for --only, where line ends separate as well. After each operation the thread uses a few pages; it survives
 * SIGSEGV and SIGBUS. No decision depends on time or on numbers of processes, so a run repeats if the machine does.
 *
 * Calls that concern the whole machine (swap, compaction, reclaim, KSM, hugetlb) are done in a guest only, that is
 * where /lab/commands exists. Files are in memory, and /mnt/file in a guest that has it.
 *
 * Prints "mmfuzz: seed SEED, N operations, M failed", then for each call how often it was done, and failed. Many calls
 * fail, as their ranges hold anything or nothing.
 *
 * Status: 0 done, 1 failed, 2 wrong usage.
 */
#include "mmfuzz_calls.h"

#include <signal.h>

#define USAGE "mmfuzz SEED OPERATIONS [THREADS] [--only LIST | --drop LIST | --replay FILE]"

enum { MOST_THREADS = 16, HUGETLB_PAGES = 4 };

static const struct call {
	const char *name;
	long (*run)(void);
	unsigned int weight; /* how often it is done, relative to the sum */
	bool in_guest_only;
} calls[] = {
	{ "mmap", do_mmap, 90, false },
	{ "mmap-file", do_mmap_file, 60, false },
	{ "mmap-file-block", do_mmap_file_block, 20, false },
	{ "mmap-huge", do_mmap_huge, 40, false },
	{ "mmap-hugetlb", do_mmap_hugetlb, 10, true },
	{ "munmap", do_munmap, 30, false },
	{ "mremap-move", do_mremap_move, 80, false },
	{ "mremap-resize", do_mremap_resize, 30, false },
	{ "mprotect", do_mprotect, 60, false },
	{ "madvise", do_madvise, 180, false },
	{ "collapse", do_collapse, 20, false },
	{ "fork", do_fork, 20, false },
	{ "exec", do_exec, 5, false },
	{ "uffd-register", do_uffd_register, 30, false },
	{ "uffd-protect", do_uffd_protect, 30, false },
	{ "pagemap-scan", do_pagemap_scan, 20, false },
	{ "uffd-move", do_uffd_move, 30, false },
	{ "process-vm", do_process_vm, 30, false },
	{ "ftruncate", do_truncate, 20, false },
	{ "punch", do_punch, 20, false },
	{ "read", do_read, 20, false },
	{ "write", do_write, 20, false },
	{ "vmsplice", do_vmsplice, 20, false },
	{ "tee", do_tee, 15, false },
	{ "splice", do_splice, 15, false },
	{ "read-pipe", do_read_pipe, 15, false },
	{ "msync", do_msync, 20, false },
	{ "mlock", do_mlock, 20, false },
	{ "mincore", do_mincore, 10, false },
	{ "soft-dirty", do_soft_dirty, 10, false },
	{ "swap", do_swap, 1, true },
	{ "compact", do_compact, 1, true },
	{ "reclaim", do_reclaim, 6, true },
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

static struct worker workers[MOST_THREADS];
static size_t threads = 1, operations;
static uint64_t seed;
static bool is_guest;
static unsigned char *is_left_out;

static void on_fault(int number)
{
	if (me && me->is_touching)
		siglongjmp(me->back, 1);
	signal(number, SIG_DFL);
}

/* The start of an operation's generator; neighbours have nothing in common. */
static uint64_t state_of(size_t operation)
{
	uint64_t state = (seed * 0x9e3779b97f4a7c15ull) ^ ((operation + 1) * 0xd1342543de82ef95ull);

	if (!state)
		state = 1;
	next_random(&state);
	return next_random(&state) | 1;
}

static size_t pick_call(void)
{
	size_t sum = 0, at, call = 0;

	for (size_t i = 0; i < CALLS; i++)
		sum += calls[i].weight;
	for (at = below(sum); at >= calls[call].weight; call++)
		at -= calls[call].weight;
	return call;
}

/* What the host's other programs would notice is generated, but not done. */
static void operate(size_t operation)
{
	size_t call;

	me->state = state_of(operation);
	call = pick_call();
	if (is_left_out[operation] || (calls[call].in_guest_only && !is_guest))
		return;
	me->done[call]++;
	if (calls[call].run() < 0)
		me->failed[call]++;
	touch(pick(), below(3));
}

static void *work(void *number)
{
	me = &workers[(size_t)number];
	me->number = (size_t)number;
	pin(me->number % (size_t)sysconf(_SC_NPROCESSORS_ONLN));
	for (size_t i = me->number; i < operations; i += threads)
		operate(i);
	return NULL;
}

static void worker_prepare(struct worker *worker)
{
	worker->done = calloc(CALLS, sizeof(*worker->done));
	worker->failed = calloc(CALLS, sizeof(*worker->failed));
	if (!worker->done || !worker->failed)
		fail("calloc");
	for (int i = 0; i < 2; i++)
		if (pipe2(worker->pipes[i], O_NONBLOCK | O_CLOEXEC))
			fail("pipe");
}

static void arena_prepare(void)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (mmap(ARENA + i * SLOT_STRIDE, pages_of(i) * PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED)
			fail("mmap");
}

static void files_prepare(void)
{
	for (int i = 0; i < FILES; i++) {
		files[i] = memfd_create("mmfuzz", MFD_CLOEXEC);
		if (files[i] < 0 || ftruncate(files[i], (off_t)SLOT_STRIDE))
			fail("memfd_create");
	}
	disk_file = is_guest ? open(DISK_FILE, O_RDWR | O_CLOEXEC) : -1;
	if (disk_file < 0)
		disk_file = files[0];
	else if (ftruncate(disk_file, 0) || ftruncate(disk_file, (off_t)SLOT_STRIDE))
		fail(DISK_FILE);
	scan_fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

/* Makes a page writable that a thread waits for. It waits for other pages until do_uffd_move() wakes it. */
static void *uffd_handler(void *unused)
{
	struct uffd_msg message;

	while (read(uffd, &message, sizeof(message)) == sizeof(message)) {
		struct uffdio_range page = { message.arg.pagefault.address & ~(PAGE - 1), PAGE };

		if (message.event != UFFD_EVENT_PAGEFAULT || !(message.arg.pagefault.flags & UFFD_PAGEFAULT_FLAG_WP))
			continue;
		if (uffd_protect(uffd, (char *)(uintptr_t)page.start, PAGE, false))
			ioctl(uffd, UFFDIO_WAKE, &page);
	}
	return unused;
}

/* A kernel that can makes pages writable without a handler. */
static void uffd_prepare(void)
{
	pthread_t id;

	uffd = uffd_new(UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED | UFFD_FEATURE_MOVE);
	if (uffd >= 0)
		return;
	uffd = uffd_new(UFFD_FEATURE_MOVE);
	if (uffd >= 0 && (errno = pthread_create(&id, NULL, uffd_handler, NULL)))
		fail("pthread_create");
}

/* What is missing makes the calls fail that need it, which is counted as failed. */
static void guest_prepare(void)
{
	is_guest = !access("/lab/commands", F_OK);
	if (!is_guest)
		return;
	swap_on();
	set(KSM_RUN, "1");
	set_number(HUGETLB_POOL, HUGETLB_PAGES);
	group_enter();
}

static void prepare(void)
{
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_NODEFER };

	if (sigaction(SIGSEGV, &action, NULL) || sigaction(SIGBUS, &action, NULL))
		fail("sigaction");
	guest_prepare();
	files_prepare();
	uffd_prepare();
	arena_prepare();
	for (size_t i = 0; i < threads; i++)
		worker_prepare(&workers[i]);
}

static unsigned long sum_of(size_t call, bool failed)
{
	unsigned long sum = 0;

	for (size_t i = 0; i < threads; i++)
		sum += failed ? workers[i].failed[call] : workers[i].done[call];
	return sum;
}

static void report(void)
{
	unsigned long done = 0, failed = 0;

	for (size_t i = 0; i < CALLS; i++) {
		done += sum_of(i, false);
		failed += sum_of(i, true);
	}
	printf("mmfuzz: seed %llu, %lu operations, %lu failed", (unsigned long long)seed, done, failed);
	for (size_t i = 0; i < CALLS; i++)
		printf(", %s %lu/%lu", calls[i].name, sum_of(i, false), sum_of(i, true));
	printf("\n");
}

static _Noreturn void refuse(const char *list)
{
	fprintf(stderr, "mmfuzz: %s: is no list of operations below %zu, such as 3-17,40\n", list, operations);
	exit(2);
}

/* Marks the operations of a list; numbers and ranges are separated by commas or line ends. */
static void mark(const char *list, unsigned char value)
{
	const char *at = list;

	while (*at) {
		char *end;
		unsigned long long first = strtoull(at, &end, 10), last = first;

		if (end == at)
			refuse(list);
		if (*end == '-') {
			at = end + 1;
			last = strtoull(at, &end, 10);
		}
		if (end == at || last < first || last >= operations || !strchr(",\n", *end))
			refuse(list);
		memset(is_left_out + first, value, last - first + 1);
		at = end + strspn(end, ",\n");
	}
}

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = NULL;
	size_t size = 0;

	if (!file || (getdelim(&text, &size, '\0', file) < 0 && ferror(file)))
		fail(path);
	fclose(file);
	return text ? text : (char *)"";
}

static void choose(const char *option, const char *argument)
{
	bool drop = !strcmp(option, "--drop"), replay = !strcmp(option, "--replay");

	if (!drop && !replay && strcmp(option, "--only"))
		usage(USAGE);
	memset(is_left_out, !drop, operations);
	mark(replay ? read_file(argument) : argument, drop);
}

/* What a child of do_exec() becomes: a program with memory of its own. */
static int be_child(void)
{
	char *memory = anonymous(MOST_TOUCHED * PAGE);

	for (size_t i = 0; i < MOST_TOUCHED; i++)
		*(volatile char *)(memory + i * PAGE) = 1;
	return 0;
}

int main(int argc, char **argv)
{
	int at = 3;

	if (argc == 2 && !strcmp(argv[1], "child"))
		return be_child();
	if (argc < 3)
		usage(USAGE);
	seed = number(argv[1]);
	operations = number(argv[2]);
	if (at < argc && argv[at][0] != '-')
		threads = number(argv[at++]);
	if (threads > MOST_THREADS || (at < argc && at + 2 != argc))
		usage(USAGE ": at most 16 threads");
	is_left_out = calloc(operations, 1);
	if (!is_left_out)
		fail("calloc");
	if (at < argc)
		choose(argv[at], argv[at + 1]);
	prepare();
	in_threads(threads, work);
	report();
	return 0;
}
