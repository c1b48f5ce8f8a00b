// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parser of profiles, which are text made from an earlier run.
 *
 *	mm_profile 1
 *	program redis-server
 *	run 12000000000
 *	heap 0x0 0x40000000 250000 480 90
 *	mmap 2 30 3 0x200000 0x600000 1900000 512 75
 *	end 2
 *
 * A row has its site (for a mapping with ordinal, length class and protection), begin,
 * end, benefit in nanoseconds for 2 MiB, touched pages of 512, and confidence in
 * percent. The last line has the number of rows, so that a truncated profile is
 * refused. A # begins a comment. Any deviation from this format refuses the whole
 * profile.
 *
 * tools/testing/tollfree builds and tests this file in user space, also with
 * millions of random texts.
 */

#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/sort.h>
#include <linux/string.h>

#include "profile.h"

#define PAGE_BYTES	4096
/* Longer than any valid line. */
#define LINE_BYTES	256

/* State of the parser. */
struct econ_reader {
	const char *at;
	const char *end;
	unsigned int line;
	const char *reason;
};

static bool econ_reader_fail(struct econ_reader *reader, const char *reason)
{
	/* Report the first error. */
	if (!reader->reason)
		reader->reason = reason;
	return false;
}

static bool econ_is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool econ_at_end_of_line(const struct econ_reader *reader)
{
	return reader->at == reader->end || *reader->at == '\n';
}

static void econ_skip_blanks(struct econ_reader *reader)
{
	while (!econ_at_end_of_line(reader) && econ_is_blank(*reader->at))
		reader->at++;
}

/* Return: length of the next word of the line, 0 if there is none. */
static size_t econ_next_word(struct econ_reader *reader, const char **word)
{
	econ_skip_blanks(reader);
	*word = reader->at;
	while (!econ_at_end_of_line(reader) && !econ_is_blank(*reader->at))
		reader->at++;
	return reader->at - *word;
}

static bool econ_is_word(const char *word, size_t length, const char *expected)
{
	return length == strlen(expected) && !memcmp(word, expected, length);
}

static bool econ_expect_end_of_line(struct econ_reader *reader)
{
	econ_skip_blanks(reader);
	if (!econ_at_end_of_line(reader) && *reader->at != '#')
		return econ_reader_fail(reader, "too many words");
	while (!econ_at_end_of_line(reader))
		reader->at++;
	return true;
}

/* Skip to the first word of the next line that is not empty. */
static bool econ_next_line(struct econ_reader *reader)
{
	while (reader->at < reader->end) {
		if (*reader->at != '\n') {
			const char *stop = memchr(reader->at, '\n',
						  reader->end - reader->at);

			if ((stop ?: reader->end) - reader->at > LINE_BYTES)
				return econ_reader_fail(reader, "the line is too long");
			econ_skip_blanks(reader);
			if (!econ_at_end_of_line(reader) && *reader->at != '#')
				return true;
			if (!stop)
				reader->at = reader->end;
			else
				reader->at = stop;
			continue;
		}
		reader->at++;
		reader->line++;
	}
	return false;
}

static int econ_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

static bool econ_read_number(struct econ_reader *reader, u64 limit, const char *what,
			     u64 *number)
{
	const char *word;
	size_t length = econ_next_word(reader, &word);
	unsigned int base = 10;
	u64 value = 0;

	if (length > 2 && word[0] == '0' && word[1] == 'x') {
		base = 16;
		word += 2;
		length -= 2;
	}
	if (!length)
		return econ_reader_fail(reader, what);
	for (; length; word++, length--) {
		unsigned int d = econ_hex_digit(*word);

		if (d >= base || value > (U64_MAX - d) / base)
			return econ_reader_fail(reader, what);
		value = value * base + d;
	}
	if (value > limit)
		return econ_reader_fail(reader, what);
	*number = value;
	return true;
}

static bool econ_read_program(struct econ_reader *reader, struct econ_profile *profile)
{
	const char *name;
	size_t length = econ_next_word(reader, &name);

	if (!length)
		return econ_reader_fail(reader, "the program has no name");
	/* Longer names are truncated, and compared up to there. */
	length = min(length, (size_t)ECON_NAME_BYTES - 1);
	memcpy(profile->name, name, length);
	profile->name[length] = '\0';
	return econ_expect_end_of_line(reader);
}

static bool econ_read_key(struct econ_reader *reader, const char *word, size_t length,
			  struct econ_site_key *key)
{
	u64 ordinal, class, protection;

	*key = (struct econ_site_key){};
	if (econ_is_word(word, length, "heap")) {
		key->site = ECON_HEAP;
		return true;
	}
	if (econ_is_word(word, length, "bss")) {
		key->site = ECON_BSS;
		return true;
	}
	if (!econ_is_word(word, length, "mmap"))
		return econ_reader_fail(reader, "neither heap, bss, mmap nor end");
	key->site = ECON_MMAP;
	if (!econ_read_number(reader, U32_MAX, "no ordinal", &ordinal) ||
	    !econ_read_number(reader, 56, "no length class of 0 to 56", &class) ||
	    !econ_read_number(reader, 7, "no protection of 0 to 7", &protection))
		return false;
	key->ordinal = ordinal;
	key->class = class;
	key->protection = protection;
	return true;
}

static bool econ_read_row(struct econ_reader *reader, struct econ_row *row)
{
	u64 touched, confidence;

	if (!econ_read_number(reader, ECON_LAST_BYTE, "no begin below 2^56",
			      &row->begin) ||
	    !econ_read_number(reader, ECON_LAST_BYTE, "no end up to 2^56",
			      &row->end))
		return false;
	if (row->begin % PAGE_BYTES || row->end % PAGE_BYTES)
		return econ_reader_fail(reader, "begin or end is not a multiple of 4096");
	if (row->begin >= row->end)
		return econ_reader_fail(reader, "the end is not behind the begin");
	if (!econ_read_number(reader, U64_MAX, "no benefit in nanoseconds",
			      &row->benefit_ns) ||
	    !econ_read_number(reader, ECON_REGION_PAGES,
			      "no number of touched pages from 0 to 512", &touched) ||
	    !econ_read_number(reader, 100, "no confidence from 0 to 100",
			      &confidence))
		return false;
	row->benefit_ns = min(row->benefit_ns, ECON_MOST_ROW_NS);
	row->line = reader->line;
	row->touched = touched;
	row->confidence = confidence;
	return econ_expect_end_of_line(reader);
}

static bool econ_read_header(struct econ_reader *reader, struct econ_profile *profile)
{
	const char *word;
	size_t length;
	u64 version;

	if (!econ_next_line(reader))
		return econ_reader_fail(reader, "empty");
	length = econ_next_word(reader, &word);
	if (!econ_is_word(word, length, "mm_profile") ||
	    !econ_read_number(reader, 1, "not of version 1", &version) || !version ||
	    !econ_expect_end_of_line(reader))
		return econ_reader_fail(reader, "the first line is not: mm_profile 1");
	if (!econ_next_line(reader))
		return econ_reader_fail(reader, "it ends before the line: program");
	length = econ_next_word(reader, &word);
	if (!econ_is_word(word, length, "program"))
		return econ_reader_fail(reader, "the second line is not: program");
	if (!econ_read_program(reader, profile))
		return false;
	if (!econ_next_line(reader))
		return econ_reader_fail(reader, "it ends before the line: run");
	length = econ_next_word(reader, &word);
	if (!econ_is_word(word, length, "run"))
		return econ_reader_fail(reader, "the third line is not: run");
	return econ_read_number(reader, U64_MAX, "no length of a run in nanoseconds",
				&profile->run_ns) &&
	       econ_expect_end_of_line(reader);
}

static bool econ_read_rows(struct econ_reader *reader, struct econ_profile *profile,
			   u32 room)
{
	while (econ_next_line(reader)) {
		const char *word;
		size_t length = econ_next_word(reader, &word);
		struct econ_row *row;
		u64 rows;

		if (econ_is_word(word, length, "end")) {
			if (!econ_read_number(reader, U32_MAX, "no number of rows",
					      &rows) || !econ_expect_end_of_line(reader))
				return false;
			if (rows != profile->nr_rows)
				return econ_reader_fail(reader, "the number of rows is wrong");
			if (econ_next_line(reader))
				return econ_reader_fail(reader, "something behind the end");
			return !reader->reason;
		}
		if (profile->nr_rows == room)
			return econ_reader_fail(reader, "too many rows");
		row = &profile->rows[profile->nr_rows];
		if (!econ_read_key(reader, word, length, &row->key) ||
		    !econ_read_row(reader, row))
			return false;
		profile->nr_rows++;
	}
	return econ_reader_fail(reader, "it ends before the line: end");
}

static int econ_compare_rows(const void *one, const void *other)
{
	const struct econ_row *a = one, *b = other;
	int order = econ_compare_keys(&a->key, &b->key);

	if (order)
		return order;
	return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Return: the first row that begins within another, or NULL. */
static const struct econ_row *econ_find_overlap(const struct econ_profile *profile)
{
	u32 i;

	for (i = 1; i < profile->nr_rows; i++) {
		const struct econ_row *row = &profile->rows[i];

		if (!econ_compare_keys(&row[-1].key, &row->key) &&
		    row[-1].end > row->begin)
			return row;
	}
	return NULL;
}

/**
 * econ_profile_parse - parse a profile
 * @text: the text, not necessarily null-terminated
 * @length: length in bytes
 * @profile: profile to fill in; its rows point to an array
 * @room: size of the array
 * @error: set on failure
 *
 * Context: any.
 * Return: false if the text is not valid; then @profile is undefined.
 */
bool econ_profile_parse(const char *text, size_t length,
			struct econ_profile *profile, u32 room,
			struct econ_parse_error *error)
{
	struct econ_reader reader = { .at = text, .end = text + length, .line = 1 };

	profile->nr_rows = 0;
	if (econ_read_header(&reader, profile) && econ_read_rows(&reader, profile, room)) {
		const struct econ_row *row;

		sort(profile->rows, profile->nr_rows, sizeof(*profile->rows),
		     econ_compare_rows, NULL);
		row = econ_find_overlap(profile);
		if (!row) {
			econ_index_rows(profile);
			return true;
		}
		econ_reader_fail(&reader, "another row has a part of the same memory");
		reader.line = row->line;
	}
	error->line = reader.line;
	error->reason = reader.reason;
	return false;
}
