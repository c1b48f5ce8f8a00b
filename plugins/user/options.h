/* SPDX-License-Identifier: GPL-2.0-only */
/* Options of the simulator on QEMU's command line: name=value, separated by commas. */
#ifndef TOLL_OPTIONS_H
#define TOLL_OPTIONS_H

#include "../tlb-model/tlb.h"
#include "memory.h"

#include <stdbool.h>

struct options {
	/* check=on: print RECORDING_MAGIC and exit. Shows that a QEMU loads the plugin. */
	bool check;
	/* out=FILE: the recording, which must exist. */
	const char *out;
	/* trace=FILE, trace_max=N: every access while counting, at most N. */
	const char *trace;
	uint64_t trace_max;
	/*
	 * sample=SHARE: share of the accesses, warming included. 1: everything is
	 * counted.
	 */
	double sample;
	/*
	 * window=N, warm=N: mean number of accesses of a counting window, and of the
	 * warming before it.
	 */
	uint64_t window, warm;
	/* only=START-END: count only these addresses, end exclusive. */
	uint64_t only_start, only_end;
	/* thp=never|madvise|always. */
	enum thp_mode thp;
	/* Geometry: see ../tlb-model/config.h. */
	struct tlb_config tlb;
};

/* False: an invalid argument; `*bad` is set to it. */
bool options_parse(struct options *options, int count, char **arguments, const char **bad);

#endif
