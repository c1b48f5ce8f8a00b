/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A trace of the models' input, for comparison with other models: records of 24 bytes, in
 * order of occurrence (per core).
 */
#ifndef TOLL_TRACE_H
#define TOLL_TRACE_H

#include <stdbool.h>
#include <stdint.h>

enum trace_kind {
	/* A page was accessed. */
	TRACE_ACCESS = 1,
	/* The translations of address..end were dropped. */
	TRACE_INVALIDATE = 2,
};

struct trace_record {
	uint64_t address;
	uint64_t end;
	uint16_t core;
	uint8_t kind;
	/* Page sizes in the two models: 0, 1, 2 for 4 KiB, 2 MiB, 1 GiB. */
	uint8_t native, huge;
	/* enum flow_class of the access. */
	uint8_t class;
	/* Number of accesses that it represents. */
	uint8_t weight;
	uint8_t counted;
};

bool trace_open(const char *path, uint64_t max);
extern bool trace_on;
void trace_write(const struct trace_record *record);
void trace_close(void);

#endif
