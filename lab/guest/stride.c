// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Accesses each of PAGES pages in turn, repeatedly: the number of misses can be computed by hand.
 *
 *     stride SECTION PAGES 4k|2m|1g read|write|execute ROUNDS
 *
 * The pages are touched before, and watched. The same section is repeated as SECTION-0 to SECTION-4, because an
 * interrupt in the middle of one adds misses of its own.
 */
#include "section.h"

enum { REPEATS = 5 };

static const struct size {
	const char *name;
	size_t bytes;
	int flags, advice;
} sizes[] = {
	{ "4k", PAGE, 0, MADV_NOHUGEPAGE },
	{ "2m", REGION, 0, MADV_HUGEPAGE },
	{ "1g", 1ul << 30, MAP_HUGETLB | 30 << MAP_HUGE_SHIFT, 0 },
};

/* Memory of pages of one size, all touched; each begins with a `ret`. */
static char *pages_of(size_t count, const struct size *size)
{
	size_t length = count * size->bytes;
	/* Room to align to 2 MiB; the kernel aligns larger pages itself. */
	char *start = mmap(NULL, length + (size->flags ? 0 : REGION), PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS | size->flags, -1, 0);

	if (start == MAP_FAILED)
		fail("mmap");
	if (!size->flags) {
		start = (char *)(((uintptr_t)start + REGION - 1) & ~(REGION - 1));
		if (madvise(start, length, size->advice))
			fail("madvise");
	}
	for (size_t page = 0; page < count; page++)
		start[page * size->bytes] = (char)0xc3;
	return start;
}

static void read_all(volatile char *start, size_t count, size_t size)
{
	for (size_t page = 0; page < count; page++)
		(void)start[page * size];
}

static void write_all(volatile char *start, size_t count, size_t size)
{
	for (size_t page = 0; page < count; page++)
		start[page * size] = (char)0xc3;
}

static void execute_all(volatile char *start, size_t count, size_t size)
{
	for (size_t page = 0; page < count; page++)
		((void (*)(void))(uintptr_t)(start + page * size))();
}

static const struct {
	const char *name;
	void (*sweep)(volatile char *, size_t, size_t);
} sweeps[] = { { "read", read_all }, { "write", write_all }, { "execute", execute_all } };

int main(int argc, char **argv)
{
	const char *text = "stride SECTION PAGES 4k|2m|1g read|write|execute ROUNDS";
	size_t count, rounds, size = 0, sweep = 0;
	char *start;

	if (argc != 6)
		usage(text);
	count = number(argv[2]);
	rounds = number(argv[5]);
	while (size < 3 && strcmp(sizes[size].name, argv[3]))
		size++;
	while (sweep < 3 && strcmp(sweeps[sweep].name, argv[4]))
		sweep++;
	if (size == 3 || sweep == 3)
		usage(text);
	start = pages_of(count, &sizes[size]);
	toll_watch(start, count * sizes[size].bytes);
	for (int repeat = 0; repeat < REPEATS; repeat++) {
		char name[64];

		snprintf(name, sizeof(name), "%s-%d", argv[1], repeat);
		/* Warm, and with a new tick just behind us. */
		usleep(1);
		sweeps[sweep].sweep(start, count, sizes[size].bytes);
		section_begin(name);
		for (size_t round = 0; round < rounds; round++)
			sweeps[sweep].sweep(start, count, sizes[size].bytes);
		section_end();
	}
	return 0;
}
