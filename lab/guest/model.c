// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * The memory accesses of inference: processes that each map a file of weights and stream through all of it once
 * a token, by several threads, while private activations stay hot.
 *
 *     model THREADS TOKENS ACTIVATION-BYTES [load:]FILE...
 *     model THREADS endless:PAUSE ACTIVATION-BYTES [load:]FILE...
 *
 * One process a file; the same file may be named twice. The weights are read only, a word of every 256 bytes, each
 * thread its own part. The first token is the first touch, by reading; it is part of the section "main". Weights after
 * "load:" are not mapped but read into private memory before the section. Activations are written by each thread
 * before.
 *
 * With "endless" it is the load beside another program, which has the section: it runs until it is killed, and each
 * thread pauses for PAUSE microseconds after every 128 KiB that it read. It prints "started" when all weights are
 * mapped or loaded. SIGUSR1 ends the pauses.
 */
#include "section.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

enum { STEP = 256, LAYERS = 16, PAUSE_AFTER = 128 << 10 };

static const char endless[] = "endless:";
static int is_endless;
static volatile useconds_t pause_us;

struct worker {
	const char *weights;
	size_t length; /* of all weights */
	int number, threads, tokens;
	uint64_t *activations;
	size_t activation_words;
	pthread_barrier_t *layer_done;
	uint64_t sum;
};

static void multiply(struct worker *worker, const char *from, size_t begin, size_t end)
{
	for (size_t at = begin; at + STEP <= end; at += STEP) {
		worker->sum += *(const uint64_t *)(from + at);
		worker->activations[at / STEP % worker->activation_words] ^= worker->sum;
	}
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	size_t layer_length = worker->length / LAYERS / PAGE * PAGE;
	size_t part = layer_length / worker->threads;
	size_t at_once = pause_us ? PAUSE_AFTER : part;

	for (int token = 0; is_endless || token < worker->tokens; token++) {
		for (int layer = 0; layer < LAYERS; layer++) {
			const char *from = worker->weights + layer * layer_length + worker->number * part;

			for (size_t at = 0; at < part; at += at_once) {
				multiply(worker, from, at, at + at_once < part ? at + at_once : part);
				if (pause_us)
					usleep(pause_us);
			}
			/* The next layer needs what all threads made of this one. */
			pthread_barrier_wait(worker->layer_done);
		}
	}
	return NULL;
}

/* Fills new private memory with a file. */
static const char *load(int fd, const char *path, size_t length)
{
	char *memory = reserve(length);

	for (size_t at = 0; at < length;) {
		ssize_t got = read(fd, memory + at, length - at);

		if (got <= 0)
			fail(path);
		at += got;
	}
	return memory;
}

static const char *get_weights(const char *path, size_t *length)
{
	static const char prefix[] = "load:";
	int is_loaded = !strncmp(path, prefix, strlen(prefix));
	const char *weights;
	struct stat stat;
	int fd;

	if (is_loaded)
		path += strlen(prefix);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &stat))
		fail(path);
	*length = stat.st_size;
	weights = is_loaded ? load(fd, path, *length) : mmap(NULL, *length, PROT_READ, MAP_SHARED, fd, 0);
	if (weights == MAP_FAILED)
		fail(path);
	close(fd);
	return weights;
}

static void infer(const struct gate *gate, const char *path, int threads, int tokens, size_t activations)
{
	struct worker *workers = calloc(threads, sizeof(*workers));
	pthread_t *ids = calloc(threads, sizeof(*ids));
	pthread_barrier_t layer_done;
	size_t length, words = activations / 8;
	const char *weights = get_weights(path, &length);

	if (!workers || !ids || pthread_barrier_init(&layer_done, NULL, threads))
		fail("threads");
	for (int i = 0; i < threads; i++) {
		workers[i] = (struct worker){ weights, length, i, threads, tokens, NULL, words, &layer_done, 0 };
		workers[i].activations = (uint64_t *)reserve(activations);
		memset(workers[i].activations, 1, activations);
	}
	gate_wait(gate);
	for (int i = 0; i < threads; i++)
		if ((errno = pthread_create(&ids[i], NULL, work, &workers[i])))
			fail("pthread_create");
	for (int i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	exit(0);
}

static void end_pauses(int signal)
{
	(void)signal;
	pause_us = 0;
}

/* How many tokens; 0 if there is no end. */
static int get_tokens(const char *text)
{
	is_endless = !strncmp(text, endless, strlen(endless));
	if (!is_endless)
		return number(text);
	pause_us = number(text + strlen(endless));
	signal(SIGUSR1, end_pauses);
	return 0;
}

int main(int argc, char **argv)
{
	int threads, tokens, processes = argc - 4;
	struct gate gate = gate_new();

	if (processes < 1)
		usage("model THREADS TOKENS|endless:PAUSE ACTIVATION-BYTES [load:]FILE...");
	threads = number(argv[1]);
	tokens = get_tokens(argv[2]);
	for (int i = 0; i < processes; i++) {
		pid_t child = new_child();

		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			infer(&gate, argv[4 + i], threads, tokens, number(argv[3]));
		}
	}
	gate_gather(&gate, processes);
	if (is_endless) {
		gate_open(&gate, processes);
		puts("started");
		fflush(stdout);
		wait_for_children(processes);
		return 1;
	}
	section_begin("main");
	gate_open(&gate, processes);
	wait_for_children(processes);
	section_note("tokens", (double)tokens * processes);
	section_end();
	return 0;
}
