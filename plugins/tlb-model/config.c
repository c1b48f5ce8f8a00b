/* SPDX-License-Identifier: GPL-2.0-only */
/* Parses TLB geometry: see config.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

static bool shape(const char *text, struct tlb_shape *shape)
{
	char *end;

	shape->entries = strtoul(text, &end, 10);
	if (*end != 'x')
		return false;
	shape->ways = strtoul(end + 1, &end, 10);
	return !*end;
}

/* Returns the array for a name like l1_4k; NULL if there is none. */
static struct tlb_shape *array_named(struct tlb_config *config, const char *name)
{
	static const char *const sizes[TLB_SIZES] = { "4k", "2m", "1g" };
	const struct {
		const char *prefix;
		struct tlb_shape *arrays;
	} levels[] = {
		{ "l1_", config->l1 },
		{ "l1c_", config->l1_code },
		{ "l2_", config->l2 },
	};

	if (!strcmp(name, "pde"))
		return &config->pde;
	if (!strcmp(name, "pdpte"))
		return &config->pdpte;
	for (size_t level = 0; level < sizeof(levels) / sizeof(*levels); level++) {
		size_t length = strlen(levels[level].prefix);

		if (strncmp(name, levels[level].prefix, length))
			continue;
		for (int size = 0; size < TLB_SIZES; size++)
			if (!strcmp(name + length, sizes[size]))
				return &levels[level].arrays[size];
	}
	return NULL;
}

bool tlb_config_set(struct tlb_config *config, const char *name, const char *value)
{
	struct tlb_shape *array = array_named(config, name);

	if (!strcmp(name, "l2_shared")) {
		config->l2_shared = !strcmp(value, "1");
		return true;
	}
	return array && shape(value, array);
}
