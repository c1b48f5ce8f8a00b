// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tests of mm/econ/profile.c and mm/econ/profile_parse.c. The argument is the number
 * of random texts to parse, default 200,000.
 */

#include "../../../mm/econ/profile.c"
#include "../../../mm/econ/profile_parse.c"

#include <stdlib.h>

#include <linux/array_size.h>

#include "tap.h"

#define ROOM	64
#define HEAD	"mm_profile 1\nprogram redis-server\nrun 1000\n"

static unsigned long texts = 200000;
static struct econ_row rows[ROOM];
static struct econ_profile profile = { .rows = rows };
static struct econ_parse_error error;

/* Number of function calls, where they are counted. */
static unsigned long calls;

__attribute__((no_instrument_function))
void __cyg_profile_func_enter(void *function, void *site)
{
	(void)function;
	(void)site;
	calls++;
}

__attribute__((no_instrument_function))
void __cyg_profile_func_exit(void *function, void *site)
{
	(void)function;
	(void)site;
}

static bool parse(const char *text)
{
	/* Exactly sized, so that a sanitizer detects reads beyond the end. */
	size_t length = strlen(text);
	char *copy = malloc(length ?: 1);
	bool done;

	memcpy(copy, text, length);
	error = (struct econ_parse_error){};
	done = econ_profile_parse(copy, length, &profile, ROOM, &error);
	free(copy);
	return done;
}

static void is_refused(const char *text, unsigned int line, const char *reason)
{
	EXPECT_EQ(parse(text), false);
	EXPECT_EQ(error.line, line);
	if (!error.reason || strcmp(error.reason, reason)) {
		printf("# \"%s\", not \"%s\"\n", error.reason, reason);
		tap_ok = false;
	}
}

static void rows_are_read_and_sorted(void)
{
	const struct econ_row *found;
	u32 nr;

	EXPECT_EQ(parse("# of yesterday\n\n" HEAD
			"mmap 2 30 3 0x200000 0x600000 1900000 512 75\n"
			"heap 0x400000 0x800000 7 480 90  # huge 2 small 0\n"
			"  heap\t0 4194304 250000 480 90\n"
			"mmap 1 30 3 0 0x1000 1 1 1\n"
			"bss 0 0x200000 5 6 7\n"
			"end 5\n\n# that is all"), true);
	EXPECT_EQ(profile.nr_rows, 5);
	EXPECT_EQ(profile.run_ns, 1000);
	EXPECT_EQ(strcmp(profile.name, "redis-server"), 0);
	found = econ_rows_of(&profile, &(struct econ_site_key){ .site = ECON_HEAP }, &nr);
	EXPECT_EQ(nr, 2);
	EXPECT_EQ(found[0].begin, 0);
	EXPECT_EQ(found[0].end, 0x400000);
	EXPECT_EQ(found[0].benefit_ns, 250000);
	EXPECT_EQ(found[1].begin, 0x400000);
	EXPECT_EQ(found[1].touched, 480);
	EXPECT_EQ(found[1].confidence, 90);
	found = econ_rows_of(&profile, &(struct econ_site_key){ ECON_MMAP, 30, 3, 2 }, &nr);
	EXPECT_EQ(nr, 1);
	EXPECT_EQ(found->benefit_ns, 1900000);
	econ_rows_of(&profile, &(struct econ_site_key){ ECON_MMAP, 30, 3, 3 }, &nr);
	EXPECT_EQ(nr, 0);
	econ_rows_of(&profile, &(struct econ_site_key){ ECON_MMAP, 30, 1, 2 }, &nr);
	EXPECT_EQ(nr, 0);
}

static void nothing_may_be_known_of_a_program(void)
{
	EXPECT_EQ(parse("mm_profile 1\nprogram xz\nrun 0\nend 0\n"), true);
	EXPECT_EQ(profile.nr_rows, 0);
}

static void what_is_wrong_is_said_with_its_line(void)
{
	is_refused("", 1, "empty");
	is_refused("\n# nothing\n\n", 4, "empty");
	is_refused("mm_profile 2\n", 1, "not of version 1");
	is_refused("mmap_filters\n", 1, "the first line is not: mm_profile 1");
	is_refused("mm_profile 1\n", 2, "it ends before the line: program");
	is_refused("mm_profile 1\nrun 5\n", 2, "the second line is not: program");
	is_refused("mm_profile 1\nprogram\n", 2, "the program has no name");
	is_refused("mm_profile 1\nprogram a b\n", 2, "too many words");
	is_refused("mm_profile 1\nprogram a\nrun -5\n", 3, "no length of a run in nanoseconds");
	is_refused(HEAD "heap 0 0x1000 1 1 1\n", 5, "it ends before the line: end");
	is_refused(HEAD "heap 0 0x1000 1 1 1\nend 2\n", 5, "the number of rows is wrong");
	is_refused(HEAD "end 0\nheap 0 0x1000 1 1 1\n", 5, "something behind the end");
	is_refused(HEAD "stack 0 0x1000 1 1 1\n", 4, "neither heap, bss, mmap nor end");
	is_refused(HEAD "heap 0x2000 0x1000 1 1 1\n", 4, "the end is not behind the begin");
	is_refused(HEAD "heap 0x1000 0x1000 1 1 1\n", 4, "the end is not behind the begin");
	is_refused(HEAD "heap 0 100 1 1 1\n", 4, "begin or end is not a multiple of 4096");
	is_refused(HEAD "heap 0 0xfffffffffffff000 1 1 1\n", 4, "no end up to 2^56");
	is_refused(HEAD "heap 0 0x1000 99999999999999999999 1 1\n", 4, "no benefit in nanoseconds");
	is_refused(HEAD "heap 0 0x1000 1 513 1\n", 4, "no number of touched pages from 0 to 512");
	is_refused(HEAD "heap 0 0x1000 1 1 101\n", 4, "no confidence from 0 to 100");
	is_refused(HEAD "heap 0 0x1000 1 1\n", 4, "no confidence from 0 to 100");
	is_refused(HEAD "heap 0 0x1000 1 1 1 1\n", 4, "too many words");
	is_refused(HEAD "mmap 1 57 3 0 0x1000 1 1 1\n", 4, "no length class of 0 to 56");
	is_refused(HEAD "mmap 1 20 8 0 0x1000 1 1 1\n", 4, "no protection of 0 to 7");
	is_refused(HEAD "heap 0x1000 0x3000 1 1 1\nheap 0 0x2000 1 1 1\nend 2\n", 4,
		   "another row has a part of the same memory");
}

static void many_rows_and_long_lines_are_refused(void)
{
	char *text = malloc(1 << 20);
	size_t length = sprintf(text, HEAD);

	for (int i = 0; i <= ROOM; i++)
		length += sprintf(text + length, "mmap %d 20 3 0 4096 1 1 1\n", i);
	is_refused(text, 4 + ROOM, "too many rows");
	length = sprintf(text, HEAD "heap ");
	memset(text + length, '0', 1000);
	text[length + 1000] = '\0';
	is_refused(text, 4, "the line is too long");
	free(text);
}

/* Truncated texts are refused. */
static void half_a_profile_is_none(void)
{
	const char *whole = HEAD "heap 0 0x400000 250000 480 90\nbss 0 0x1000 1 1 1\nend 2\n";

	for (size_t length = 0; length < strlen(whole) - 1; length++) {
		char *part = strndup(whole, length);

		EXPECT_EQ(parse(part), false);
		free(part);
	}
	EXPECT_EQ(parse(whole), true);
}

/* The largest constant cost in a model is a second, and at least an eighth is left. */
static void a_row_is_worth_no_more_than_can_matter(void)
{
	EXPECT_EQ(parse(HEAD "heap 0 0x1000 18446744073709551615 1 1\n"
			"heap 0x1000 0x2000 10000000000 1 1\n"
			"heap 0x2000 0x3000 9999999999 1 1\nend 3\n"), true);
	EXPECT_EQ(rows[0].benefit_ns, 10000000000ULL);
	EXPECT_EQ(rows[1].benefit_ns, 10000000000ULL);
	EXPECT_EQ(rows[2].benefit_ns, 9999999999ULL);
}

#define MANY	31000

/*
 * A lookup by address in the largest number of rows that a profile of 1 MiB can have, all of
 * one site. It must not visit every row.
 */
static void a_lookup_is_logarithmic(void)
{
	static const char *const sites[] = { "heap", "bss", "mmap 2 30 3" };
	static const struct econ_site_key keys[] = {
		{ .site = ECON_HEAP },
		{ .site = ECON_BSS },
		{ .site = ECON_MMAP, .ordinal = 2, .class = 30, .protection = 3 },
	};
	struct econ_profile large = { .rows = calloc(MANY, sizeof(*large.rows)) };
	char *text = malloc(2 << 20);

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		size_t length = sprintf(text, HEAD);
		const struct econ_row *found;
		u32 nr, at;

		for (unsigned int row = 0; row < MANY; row++)
			length += sprintf(text + length, "%s 0x%x 0x%x 1 1 1\n", sites[i],
					  row << 13, (row << 13) + 0x1000);
		length += sprintf(text + length, "end %d\n", MANY);
		EXPECT_EQ(econ_profile_parse(text, length, &large, MANY, &error), true);
		calls = 0;
		found = econ_rows_of(&large, &keys[i], &nr);
		EXPECT_EQ(nr, MANY);
		EXPECT_EQ(found == large.rows, true);
		at = econ_row_from(found, nr, 29999 << 13);
		EXPECT_EQ(at, 29999);
		printf("# %s: %lu calls\n", sites[i], calls);
		/* Two searches for a site and one for an address, of 15 steps each. */
		EXPECT_EQ(calls <= 3 * 16 + 4, true);
		/* Between two, at the first byte after one, and after the last. */
		EXPECT_EQ(econ_row_from(found, nr, (29999 << 13) + 0x1000), 30000);
		EXPECT_EQ(econ_row_from(found, nr, (29999 << 13) + 0xfff), 29999);
		EXPECT_EQ(econ_row_from(found, nr, (u64)MANY << 13), MANY);
		EXPECT_EQ(econ_row_from(found, 0, 0), 0);
		/* The other sites have no rows. */
		econ_rows_of(&large, &keys[(i + 1) % ARRAY_SIZE(keys)], &nr);
		EXPECT_EQ(nr, 0);
	}
	free(text);
	free(large.rows);
}

static void a_region_has_what_its_parts_have(void)
{
	struct econ_row row = { .benefit_ns = 1000000, .touched = 512, .confidence = 50 };
	struct econ_region region = {};

	econ_region_add(&region, &row, 1 << 20);
	EXPECT_EQ(region.walks_ns, 250000);
	EXPECT_EQ(region.touched, 256);
	row.benefit_ns = U64_MAX;
	row.confidence = 100;
	econ_region_add(&region, &row, 2 << 20);
	EXPECT_EQ(region.walks_ns, U64_MAX);
	EXPECT_EQ(region.touched, 768);
}

static void a_quarter_of_a_region_speaks_for_it(void)
{
	struct econ_row row = { .benefit_ns = 1000000, .touched = 512, .confidence = 100 };
	struct econ_region quarter = {}, less = {}, all = {}, dear = {};

	econ_region_add(&quarter, &row, 512 << 10);
	econ_region_fill(&quarter);
	EXPECT_EQ(quarter.walks_ns, 1000000);
	EXPECT_EQ(quarter.touched, 512);
	econ_region_add(&less, &row, 508 << 10);
	econ_region_fill(&less);
	EXPECT_EQ(less.touched, 127);
	econ_region_add(&all, &row, 2 << 20);
	econ_region_fill(&all);
	EXPECT_EQ(all.walks_ns, 1000000);
	row.benefit_ns = U64_MAX;
	econ_region_add(&dear, &row, 1 << 20);
	econ_region_fill(&dear);
	EXPECT_EQ(dear.walks_ns, U64_MAX);
}

static void a_benefit_falls_with_the_run(void)
{
	EXPECT_EQ(econ_left_ns(8000, 1000, 0), 8000);
	EXPECT_EQ(econ_left_ns(8000, 1000, 500), 4000);
	EXPECT_EQ(econ_left_ns(8000, 1000, 999), 1000);
	EXPECT_EQ(econ_left_ns(8000, 1000, 1000000), 1000);
	EXPECT_EQ(econ_left_ns(8000, 0, 5), 0);
	EXPECT_EQ(econ_left_ns(U64_MAX, U64_MAX, 0), U64_MAX);
	EXPECT_EQ(econ_left_ns(U64_MAX, 1, 0), U64_MAX);
}

static void unused_pages_make_a_row_worth_less(void)
{
	/* Not observed, or used each time: as the profile says. */
	EXPECT_EQ(econ_believed_ns(9000, 0, 0), 9000);
	EXPECT_EQ(econ_believed_ns(9000, 7, 7), 9000);
	EXPECT_EQ(econ_believed_ns(9000, 4, 0), 4500);
	EXPECT_EQ(econ_believed_ns(9000, 4, 2), 6750);
	EXPECT_EQ(econ_believed_ns(9000, 32, 0), 1000);
	EXPECT_EQ(econ_believed_ns(0, 32, 0), 0);
	EXPECT_EQ(econ_believed_ns(9000, 4, 5), 9000);
	EXPECT_EQ(econ_believed_ns(U64_MAX, U32_MAX, U32_MAX), U64_MAX);
}

static u64 seed = 88172645463325252ULL;

static u32 any(u32 below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 32) % below;
}

/* Accepted profiles are sorted, in bounds, and without overlap. */
static bool is_sound(void)
{
	for (u32 i = 0; i < profile.nr_rows; i++) {
		const struct econ_row *row = &rows[i];

		if (row->begin >= row->end || row->end > ECON_LAST_BYTE ||
		    (row->begin | row->end) % PAGE_BYTES || row->touched > 512 ||
		    row->confidence > 100)
			return false;
		if (i && econ_compare_rows(row - 1, row) >= 0)
			return false;
	}
	return profile.nr_rows <= ROOM && strlen(profile.name) < ECON_NAME_BYTES;
}

/* Whole profiles with bytes changed, removed, duplicated or copied from elsewhere. */
static void no_text_does_harm(void)
{
	static const char *const words[] = {
		"heap", "bss", "mmap", "end", "run", "program", "mm_profile", "0x", "0", "-", "\n",
		"18446744073709551615", "0xffffffffffffffff", "4096", "#", " ", "512", "100", "1",
	};
	unsigned long taken = 0;

	for (unsigned long i = 0; i < texts; i++) {
		char text[1024] = HEAD "heap 0 0x400000 250000 480 90\nmmap 2 30 3 0 4096 7 8 9\n"
				  "mmap 3 30 3 0x200000 0x600000 1 512 75\nend 3\n";
		size_t length = strlen(text);
		char *copy;

		for (int changes = any(4); changes >= 0; changes--) {
			size_t at = any(length + 1), n = any(20);
			const char *word = words[any(ARRAY_SIZE(words))];

			switch (any(5)) {
			case 0:
				text[min(at, length)] = any(256);
				break;
			case 1:
				n = min(n, length - at);
				memmove(text + at, text + at + n, length - at - n);
				length -= n;
				break;
			case 2:
				n = strlen(word);
				memmove(text + at + n, text + at, length - at);
				memcpy(text + at, word, n);
				length += n;
				break;
			case 3:
				n = min(n, length - at);
				memmove(text + at + n, text + at, length - at);
				length += n;
				break;
			default:
				length = any(8) ? length : at;
			}
		}
		copy = malloc(length ?: 1);
		memcpy(copy, text, length);
		error = (struct econ_parse_error){};
		if (econ_profile_parse(copy, length, &profile, ROOM, &error)) {
			EXPECT_EQ(is_sound(), true);
			taken++;
		} else {
			EXPECT_EQ(error.line >= 1 && error.reason, true);
		}
		free(copy);
	}
	printf("# %lu texts, %lu taken\n", texts, taken);
	EXPECT_EQ(taken > 0 && taken < texts, true);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		texts = strtoul(argv[1], NULL, 0);
	RUN(rows_are_read_and_sorted);
	RUN(nothing_may_be_known_of_a_program);
	RUN(what_is_wrong_is_said_with_its_line);
	RUN(many_rows_and_long_lines_are_refused);
	RUN(half_a_profile_is_none);
	RUN(a_row_is_worth_no_more_than_can_matter);
	RUN(a_lookup_is_logarithmic);
	RUN(a_region_has_what_its_parts_have);
	RUN(a_quarter_of_a_region_speaks_for_it);
	RUN(a_benefit_falls_with_the_run);
	RUN(unused_pages_make_a_row_worth_less);
	RUN(no_text_does_harm);
	return tap_end();
}
