/* SPDX-License-Identifier: GPL-2.0-only */
/* Shared by the files of the program luf. */
#ifndef TOLLFREE_LUF_H
#define TOLLFREE_LUF_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "harness.h"
#include "luf_test.h"

#define TRIES		40
#define FIXED		"an emulator that may run old code for ever"
#define KSM		"/sys/kernel/mm/ksm/"

enum { OLD = 0x01d01d01, NEW = 0x0eee0eee, OTHER = 0x07e47e47, FAULTED = -1 };

/* A test; an entry of a list of tests, which ends with an empty one. */
struct litmus {
	const char *name;
	/* Return: address with OLD for the reader; NULL, and the reason, if not possible. */
	int *(*set_up)(void);
	/* Operation after which OLD must not be read any more. */
	void (*act)(int *at);
	/* Result of later reads: a value, or FAULTED. */
	int expected;
};

extern const struct litmus luf_file_litmuses[], luf_map_litmuses[], luf_anon_litmuses[];

/* luf_reader.c */
struct reader {
	pthread_t thread;
	const int *at;
	bool runs;	/* it calls what is there, and does not read it */
	int old;	/* what it saw at first */
	int value;
	long rounds;
	long faults;	/* of memory, not of access */
	bool stop;
};

extern struct reader reader;
void on_no_access(int signal);
int read_now(void);
void start_reader(const void *at);
void stop_reader(void);
bool is_mapped(const void *at);
void close_pagemap(void);
void reclaim_all(void);
int tries(void);
void wait_a_bit(void);
bool make_stale(const void *at);
void not_stale(const char *name);

/* luf_memory.c: files, mappings and processes, which end with the test. */
extern int file;	/* for reading */
extern int kept;	/* what must stay open until the reader has looked again */
extern int *elsewhere;	/* what must stay mapped as long: to unmap flushes */
extern pid_t sharer;	/* shares anonymous memory, or traces */
extern const char *const names[2];
void *cannot(const char *why);
void make_file(const char *name, const void *content, size_t size);
void fill(const char *name, int value, size_t size);
void *reclaimable(void *at);
void *map(int protection, int flags);
int *shared_file(void);
void *anonymous_page(void);
void new_page(int *words);
void old_page(int *words);
int *aligned_page(void);
void *away_from(void *at);
int ended(pid_t child);
void end_sharer(void);

/* luf_file.c */
int *remote_file(void);
void act_write_remotely(int *at);
void end_writers(void);
void end_overlay(void);

/* luf_map.c */
void act_map_fixed(int *at);
void act_unmap(int *at);
void act_mremap_away(int *at);
void act_protect(int *at);
void act_poke(int *at);
void act_fork_and_store(int *at);

/* luf_anon.c */
void *merge(int *at);
void end_twin(void);

/* luf_litmus.c */
void clean_up(int *at);
void try_litmuses(const struct litmus *test);
void try_exit_and_exec(void);
int look_again(void);
void lock_memory(void);
pid_t start(void (*actor)(void (*)(void)), void (*go)(void));
void go_at_once(void (*go)(void));

/* luf_refusal.c */
unsigned int count_refusals(void);
void try_refusals(void);

#endif
