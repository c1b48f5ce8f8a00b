// SPDX-License-Identifier: MIT OR Apache-2.0
/* What page tables of processes take, by PageTables of /proc/meminfo. */
#ifndef PAGE_TABLES_H
#define PAGE_TABLES_H

#include "util.h"

#include <fcntl.h>

static inline double page_table_bytes(void)
{
	/* Each CPU keeps a part of the counter to itself; this gathers them. */
	int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY | O_CLOEXEC);
	unsigned long kib = 0;
	char line[128];
	FILE *file;

	if (fd < 0 || write(fd, "1", 1) != 1)
		fail("/proc/sys/vm/stat_refresh");
	close(fd);
	file = fopen("/proc/meminfo", "re");
	if (!file)
		fail("/proc/meminfo");
	while (fgets(line, sizeof(line), file) && sscanf(line, "PageTables: %lu", &kib) != 1)
		;
	fclose(file);
	return kib * 1024.0;
}

/* What those of children take that wait at a gate, since there were `before` bytes; the children end. */
static inline double page_tables_of(const struct gate *gate, int children, double before)
{
	double taken;

	gate_gather(gate, children);
	taken = page_table_bytes() - before;
	gate_open(gate, children);
	wait_for_children(children);
	return taken;
}

#endif
