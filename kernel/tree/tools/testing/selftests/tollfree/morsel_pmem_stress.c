// SPDX-License-Identifier: GPL-2.0-only
/*
 * Changed ranges of persistent morsels, for some seconds (the first argument, 3 if there is
 * none): words that are valid and mean something else, and flipped bits. Each range is
 * mounted, and if it can be, all of it is read in two ways: both find the same, or an
 * error, and never a word that is not in the range.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#include "morsel_pmem.h"
#include "morsel_test.h"
#include "stress.h"

/* Pages that have metadata. */
#define METADATA	((LAST + 101) * PAGE)
/* Largest part of a file that is mapped. */
#define MOST_MAPPED	(4UL << 30)

static unsigned long mounted, refused, read_pages, mapped_pages, wrong;

static void complain(const char *what, const char *name, uint64_t word)
{
	wrong++;
	ksft_print_msg("%s: %s: 0x%lx\n", name, what, word);
}

/* Only these words are in the pages that are not metadata. */
static bool is_in_range(uint64_t word, const char *page, size_t length)
{
	for (uint64_t i = 0; i < IMAGE_PAGES; i++)
		if (word == content_of(i))
			return true;
	/* Metadata, at the same place of some page. */
	for (size_t at = 0; at < METADATA; at += PAGE)
		if (!memcmp(image + at, page, length))
			return true;
	return !word;
}

/* Compare a page that was read with the mapped one. */
static void look_at(const char *name, const char *page, size_t length, const char *mapped)
{
	uint64_t word, at = any(PAGE / 8) * 8;

	/* Behind the end of the file a mapping shows the rest of the page. */
	if (at + 8 > length)
		return;
	read_pages++;
	if (!is_in_range(load(page + at), page, length))
		complain("not in the range", name, load(page + at));
	if (!mapped || !try_to_load(mapped + at, &word))
		return;
	mapped_pages++;
	if (word != load(page + at))
		complain("read and mapped differ", name, word);
}

static void read_file(const char *name)
{
	static uint64_t aligned[PAGE / 8];
	char path[300], *memory, *page = (char *)aligned;
	struct stat stat;
	size_t length;
	int fd;

	snprintf(path, sizeof(path), MOUNT "/%s", name);
	if (lstat(path, &stat) || !S_ISREG(stat.st_mode))
		return;
	fd = open(path, O_RDONLY);
	length = (size_t)stat.st_size < MOST_MAPPED ? (size_t)stat.st_size : MOST_MAPPED;
	memory = length ? mmap(NULL, length, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
	for (unsigned int i = 0; fd >= 0 && length && i < 64; i++) {
		ssize_t got;
		size_t at = (i < 4 ? i : any(i % 2 ? 1100 : length / PAGE + 1)) * PAGE;

		memset(page, 0, PAGE);
		got = pread(fd, page, PAGE, at);
		if (got > 0)
			look_at(name, page, got,
				memory != MAP_FAILED && at < length ? memory + at : NULL);
	}
	if (memory != MAP_FAILED)
		munmap(memory, length);
	close(fd);
}

static void read_directory(const char *name)
{
	char path[300];
	struct dirent *entry;
	DIR *directory;

	snprintf(path, sizeof(path), MOUNT "/%s", name);
	directory = opendir(path);
	while (directory && (entry = readdir(directory))) {
		snprintf(path, sizeof(path), "%s/%s", name, entry->d_name);
		read_file(path);
	}
	if (directory)
		closedir(directory);
}

static void change_image(void)
{
	for (unsigned int n = any(3) + 1; n; n--) {
		uint64_t at = words[any(nr_words)], old;

		memcpy(&old, image + at, 8);
		if (!any(8)) {
			old ^= 1UL << any(64);
			memcpy(image + at, &old, 8);
			continue;
		}
		old &= (1UL << 48) - 1;
		if (any(2))
			image_word(at, old ^ 1UL << any(48));
		else
			image_word(at, any(IMAGE_PAGES + 2) | (uint64_t)any(2) << 40 |
				   (uint64_t)any(2) << 43 | (uint64_t)(any(2) * 8) << 44);
	}
}

static void try_an_image(void)
{
	make_image();
	change_image();
	write_device(image, METADATA, 0);
	if (mount_device()) {
		refused++;
		if (errno != EUCLEAN)
			complain("mount", strerror(errno), errno);
		return;
	}
	mounted++;
	read_directory(".");
	read_directory("d");
	unmount();
}

static bool both_occurred(void)
{
	return mounted >= 3 && refused >= 3 && mapped_pages >= 10;
}

int main(int argc, char **argv)
{
	unsigned int seconds = argc > 1 ? atoi(argv[1]) : 3;
	time_t end = time(NULL) + seconds;
	uint64_t begin;

	ksft_print_header();
	need_device();
	ksft_set_plan(2);
	must(getrandom(&seed, sizeof(seed), 0) == sizeof(seed), "getrandom");
	begin = seed;
	signal(SIGBUS, jump);
	make_image();
	write_image();
	/* A debug kernel under an emulator tries a few in a second. */
	while (time(NULL) < end || (!both_occurred() && time(NULL) < end + 60))
		try_an_image();
	ksft_print_msg("seed 0x%lx: %lu mounted, %lu refused, %lu pages read, %lu mapped\n", begin,
		       mounted, refused, read_pages, mapped_pages);
	ksft_test_result(!wrong, "what is found is in the range\n");
	ksft_test_result(both_occurred(), "some can be mounted, some are refused\n");
	ksft_finished();
}
