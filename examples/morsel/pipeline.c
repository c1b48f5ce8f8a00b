// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * A pipeline of two processes: a producer fills packets of any size and hands each to a consumer by
 * descriptor; the consumer maps it, adds up its words, and answers with the sum.
 *
 *     cc -O2 -o pipeline pipeline.c && ./pipeline [PACKETS [SIZE...]]
 *
 * TOLLFREE_MORSELS names a directory on morselfs, if there is one.
 */
#define _GNU_SOURCE
#include "morsel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* The words of each packet follow from its number. */
static uint64_t fill(char *start, size_t size, uint64_t number)
{
	uint64_t sum = 0;

	for (size_t at = 0; at + 8 <= size; at += 8) {
		uint64_t word = (number + at) * 0x9e3779b97f4a7c15u;

		memcpy(start + at, &word, 8);
		sum += word;
	}
	return sum;
}

static uint64_t add_up(const char *start, size_t size)
{
	uint64_t sum = 0, word;

	for (size_t at = 0; at + 8 <= size; at += 8) {
		memcpy(&word, start + at, 8);
		sum += word;
	}
	return sum;
}

static void consume(int socket)
{
	struct morsel m;

	while (morsel_receive(socket, &m) == 0) {
		uint64_t sum;

		if (mmap(NULL, m.length, PROT_WRITE, MAP_SHARED, m.fd, 0) != MAP_FAILED) {
			fprintf(stderr, "a sealed packet can be mapped writable\n");
			exit(1);
		}
		if (morsel_map(&m) < 0)
			die("map");
		sum = add_up(m.start, m.size);
		morsel_drop(&m);
		if (write(socket, &sum, sizeof(sum)) != sizeof(sum))
			die("answer");
	}
	if (errno != ENODATA)
		die("receive");
	exit(0);
}

/* Sends packets of one size; prints what they took. */
static void produce(int socket, size_t size, int packets)
{
	const char *directory = getenv("TOLLFREE_MORSELS");
	const char *from = "";
	double waited = 0;

	for (int number = 0; number < packets; number++) {
		uint64_t sum, answer;
		struct morsel m;
		double begun;

		if (morsel_create(&m, directory && *directory ? directory : NULL, size) < 0)
			die("create");
		sum = fill(m.start, size, number);
		begun = now();
		if (morsel_seal(&m) < 0)
			die("seal");
		if (morsel_send(socket, &m) < 0)
			die("send");
		from = morsel_from_name(&m);
		morsel_drop(&m);
		if (read(socket, &answer, sizeof(answer)) != sizeof(answer))
			die("the consumer's answer");
		waited += now() - begun;
		if (answer != sum) {
			fprintf(stderr, "packet %d: sum %#" PRIx64 ", not %#" PRIx64 "\n", number, answer, sum);
			exit(1);
		}
	}
	printf("%d packets of %zu bytes (%s): %.1f us each from seal to answer\n", packets, size, from,
	       waited / packets * 1e6);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int packets = argc > 1 ? atoi(argv[1]) : 100;
	int sockets[2], status;
	pid_t consumer;

	if (packets < 1) {
		fprintf(stderr, "usage: %s [PACKETS [SIZE...]]\n", argv[0]);
		return 2;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0)
		die("socketpair");
	consumer = fork();
	if (consumer < 0)
		die("fork");
	if (consumer == 0) {
		close(sockets[0]);
		consume(sockets[1]);
	}
	close(sockets[1]);
	if (argc > 2) {
		for (int i = 2; i < argc; i++)
			produce(sockets[0], strtoull(argv[i], NULL, 0), packets);
	} else {
		for (size_t size = 4096; size <= 64u << 20; size *= 16)
			produce(sockets[0], size, packets);
	}
	close(sockets[0]);
	if (waitpid(consumer, &status, 0) < 0)
		die("waitpid");
	return status == 0 ? 0 : 1;
}
