/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line of the simulator: see options.h. */
#define _GNU_SOURCE
#include "options.h"

#include "../tlb-model/config.h"

#include <stdlib.h>
#include <string.h>

static bool number(const char *text, uint64_t *value)
{
	char *end;

	*value = strtoull(text, &end, 0);
	return *text && !*end;
}

static bool share(const char *text, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return *text && !*end && *value > 0 && *value <= 1;
}

static bool range(const char *text, uint64_t *start, uint64_t *end)
{
	char *rest;

	*start = strtoull(text, &rest, 0);
	return *rest == '-' && number(rest + 1, end) && *start < *end;
}

static bool thp_mode(const char *text, enum thp_mode *mode)
{
	static const char *const names[] = { "never", "madvise", "always" };

	for (int i = 0; i < 3; i++) {
		if (!strcmp(text, names[i])) {
			*mode = i;
			return true;
		}
	}
	return false;
}

static bool parse(struct options *options, const char *name, const char *value)
{
	if (!strcmp(name, "check"))
		return options->check = !strcmp(value, "on");
	if (!strcmp(name, "out"))
		return (options->out = value)[0] != 0;
	if (!strcmp(name, "trace"))
		return (options->trace = value)[0] != 0;
	if (!strcmp(name, "trace_max"))
		return number(value, &options->trace_max);
	if (!strcmp(name, "sample"))
		return share(value, &options->sample);
	if (!strcmp(name, "window"))
		return number(value, &options->window) && options->window;
	if (!strcmp(name, "warm"))
		return number(value, &options->warm);
	if (!strcmp(name, "only"))
		return range(value, &options->only_start, &options->only_end);
	if (!strcmp(name, "thp"))
		return thp_mode(value, &options->thp);
	return tlb_config_set(&options->tlb, name, value);
}

bool options_parse(struct options *options, int count, char **arguments, const char **bad)
{
	*options = (struct options){
		.sample = 0.1,
		.window = 100000,
		.warm = 50000,
		.only_end = UINT64_MAX,
		.trace_max = 1000000,
		.thp = THP_MADVISE,
	};
	for (int i = 0; i < count; i++) {
		char *name = strdup(arguments[i]);
		char *value = name ? strchr(name, '=') : NULL;

		/* Values point into the copy, which is never freed. */
		*bad = arguments[i];
		if (!value)
			return false;
		*value++ = 0;
		if (!parse(options, name, value))
			return false;
	}
	*bad = "out";
	return options->out || options->check;
}
