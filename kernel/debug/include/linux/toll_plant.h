/* SPDX-License-Identifier: GPL-2.0-only */
/* Files in sysfs with one name a line, the chosen one in brackets, for bugs that tests inject. */
#ifndef _LINUX_TOLL_PLANT_H
#define _LINUX_TOLL_PLANT_H

#include <linux/compiler.h>
#include <linux/string.h>
#include <linux/sysfs.h>

/**
 * toll_plant_show - print the names
 * @text: page to print to
 * @names: the names
 * @count: number of names
 * @chosen: index of the chosen one
 *
 * Context: any.
 * Return: length of the text.
 */
static inline ssize_t toll_plant_show(char *text, const char *const *names,
				      unsigned int count, unsigned int chosen)
{
	unsigned int i;
	int length = 0;

	for (i = 0; i < count; i++)
		length += sysfs_emit_at(text, length,
					i == chosen ? "[%s]\n" : "%s\n",
					names[i]);
	return length;
}

/**
 * toll_plant_store - choose a name
 * @text: the name that was written
 * @length: its length
 * @names: the names
 * @count: number of names
 * @chosen: index of the chosen one, is set
 *
 * Context: any.
 * Return: @length, or -EINVAL if there is no such name.
 */
static inline ssize_t toll_plant_store(const char *text, size_t length,
				       const char *const *names, unsigned int count,
				       unsigned int *chosen)
{
	int name = __sysfs_match_string(names, count, text);

	if (name < 0)
		return name;
	WRITE_ONCE(*chosen, name);
	return length;
}

#endif /* _LINUX_TOLL_PLANT_H */
