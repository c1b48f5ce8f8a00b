/* SPDX-License-Identifier: GPL-2.0-only */
/* The trace: see trace.h. */
#define _GNU_SOURCE
#include "trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#define BUFFER 4096

bool trace_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct trace_record buffer[BUFFER];
static unsigned int used;
static uint64_t left;
static int file = -1;

_Static_assert(sizeof(struct trace_record) == 24, "trace record has no holes");

bool trace_open(const char *path, uint64_t max)
{
	file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	left = max;
	trace_on = file >= 0;
	return trace_on;
}

static void flush(void)
{
	const char *at = (const char *)buffer;
	size_t bytes = used * sizeof(buffer[0]);

	while (bytes) {
		ssize_t wrote = write(file, at, bytes);

		if (wrote <= 0) {
			left = 0;
			break;
		}
		at += wrote;
		bytes -= wrote;
	}
	used = 0;
}

void trace_write(const struct trace_record *record)
{
	pthread_mutex_lock(&lock);
	if (left) {
		left--;
		buffer[used++] = *record;
		if (used == BUFFER)
			flush();
	}
	pthread_mutex_unlock(&lock);
}

void trace_close(void)
{
	if (!trace_on)
		return;
	pthread_mutex_lock(&lock);
	flush();
	close(file);
	trace_on = false;
	pthread_mutex_unlock(&lock);
}
