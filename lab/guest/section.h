// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A measured part of a run: the counts of the virtual PMU between section_begin() and section_end(), the kernel's own
 * counters (/proc/vmstat, and /sys/kernel/mm/luf/stats if it exists), and the notes of the program. The latter two go to /out/NAME.notes, a name and a number a line: vmstat_NAME, luf_NAME, note_NAME.
 */
#ifndef SECTION_H
#define SECTION_H

#include "toll.h"
#include "util.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum { SECTION_NOTES = 64, SECTION_STAT_SIZE = 1 << 14 };

static struct {
	const char *name;
	char before[SECTION_STAT_SIZE], after[SECTION_STAT_SIZE];
	char luf_before[SECTION_STAT_SIZE], luf_after[SECTION_STAT_SIZE];
	struct {
		const char *name;
		double value;
	} notes[SECTION_NOTES];
	size_t noted;
} section;

static inline void section_read_stat(char *text)
{
	int fd = open("/proc/vmstat", O_RDONLY | O_CLOEXEC);
	ssize_t length = 0, got;

	if (fd < 0)
		fail("/proc/vmstat");
	while ((got = read(fd, text + length, SECTION_STAT_SIZE - 1 - length)) > 0)
		length += got;
	text[length] = '\0';
	close(fd);
}

/* The same of each file of lazy unmap flush; a drain of N pages and more counts as drains_N. */
static inline void section_read_luf(char *text)
{
	DIR *directory = opendir("/sys/kernel/mm/luf/stats");
	struct dirent *entry;
	size_t length = 0;

	*text = '\0';
	while (directory && (entry = readdir(directory))) {
		char path[300], line[64];
		FILE *file;

		snprintf(path, sizeof(path), "/sys/kernel/mm/luf/stats/%s", entry->d_name);
		file = *entry->d_name == '.' ? NULL : fopen(path, "re");
		while (file && fgets(line, sizeof(line), file)) {
			const char *name = strchr(line, ' ') ? "drains" : entry->d_name;

			length += snprintf(text + length, SECTION_STAT_SIZE - length, "%s%s%s", name,
					   strchr(line, ' ') ? "_" : " ", line);
		}
		if (file)
			fclose(file);
	}
	if (directory)
		closedir(directory);
}

/* `name` must live until the end: lower case, digits, dashes. */
static inline void section_begin(const char *name)
{
	section.name = name;
	section.noted = 0;
	section_read_stat(section.before);
	section_read_luf(section.luf_before);
	toll_begin(name);
}

/* A measure of the program's own, for the section that is open. */
static inline void section_note(const char *name, double value)
{
	if (section.noted == SECTION_NOTES)
		fail("too many notes");
	section.notes[section.noted].name = name;
	section.notes[section.noted++].value = value;
}

/* The number behind a name in /proc/vmstat. */
static inline long long section_stat(const char *text, const char *name, size_t length)
{
	for (; *text; text = strchr(text, '\n') + 1)
		if (!strncmp(text, name, length) && text[length] == ' ')
			return atoll(text + length);
	return 0;
}

static inline void section_write_changes(FILE *file, const char *kind, const char *before, const char *after)
{
	for (const char *line = after; *line; line = strchr(line, '\n') + 1) {
		size_t length = strcspn(line, " ");
		long long change = atoll(line + length) - section_stat(before, line, length);

		if (change)
			fprintf(file, "%s_%.*s %lld\n", kind, (int)length, line, change);
	}
}

static inline void section_end(void)
{
	char path[256];
	FILE *file;

	toll_end();
	section_read_stat(section.after);
	section_read_luf(section.luf_after);
	snprintf(path, sizeof(path), "/out/%s.notes", section.name);
	file = fopen(path, "we");
	if (!file)
		fail(path);
	section_write_changes(file, "vmstat", section.before, section.after);
	section_write_changes(file, "luf", section.luf_before, section.luf_after);
	for (size_t i = 0; i < section.noted; i++)
		fprintf(file, "note_%s %.17g\n", section.notes[i].name, section.notes[i].value);
	if (fclose(file))
		fail(path);
}

#endif
