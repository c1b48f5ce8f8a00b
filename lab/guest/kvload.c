// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Load for a key-value store at a socket of this machine: values are set under all keys in turn, then keys at random
 * are read and set anew, 16 requests at a time; then the store is told to end.
 *
 *     kvload redis|memcached SOCKET REQUESTS KEYS VALUE-BYTES SEED
 *
 * Every fourth request after the first KEYS sets, the others read. An answer of an unexpected length is an error.
 */
#include "util.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

enum { MOST_SECONDS = 60, BATCH = 16, HEAD = 128 };

static int fd, is_redis;
/* Requests that are not sent yet, and the bytes of their answers. */
static char *batch;
static size_t length, filled, expected, requested;

static void connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval limit = { .tv_sec = MOST_SECONDS };

	if (strlen(path) >= sizeof(address.sun_path))
		usage("kvload: the path of the socket is too long");
	strcpy(address.sun_path, path);
	/* It may still be starting. */
	for (int tries = 0; tries < MOST_SECONDS * 10; tries++) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		if (fd >= 0 && !connect(fd, (void *)&address, sizeof(address)))
			return;
		close(fd);
		usleep(100000);
	}
	fail(path);
}

static void send_all(const char *data, size_t length)
{
	while (length) {
		ssize_t sent = send(fd, data, length, MSG_NOSIGNAL);

		if (sent <= 0)
			fail("send");
		data += sent;
		length -= sent;
	}
}

/* Sends the pending requests, and reads the answers, which have known sizes. */
static void settle(void)
{
	static char answer[1 << 16];

	send_all(batch, filled);
	while (expected) {
		ssize_t got = recv(fd, answer, sizeof(answer) < expected ? sizeof(answer) : expected, 0);

		/* An error is shorter than an answer: nothing more comes. */
		if (got <= 0) {
			fprintf(stderr, "kvload: no answer, but %.60s\n", answer);
			exit(1);
		}
		expected -= got;
	}
	filled = requested = 0;
}

static void request(int head, size_t of_value, size_t of_answer)
{
	filled += head;
	if (of_value) {
		memset(batch + filled, 'a' + of_answer % 26, of_value);
		memcpy(batch + filled + of_value, "\r\n", 2);
		filled += of_value + 2;
	}
	expected += of_answer;
	if (++requested == BATCH)
		settle();
}

static void set(size_t key)
{
	char *at = batch + filled;

	if (is_redis)
		request(sprintf(at, "*3\r\n$3\r\nSET\r\n$14\r\nkey-%010zu\r\n$%zu\r\n", key, length), length,
			strlen("+OK\r\n"));
	else
		request(sprintf(at, "set key-%010zu 0 0 %zu\r\n", key, length), length, strlen("STORED\r\n"));
}

static void get(size_t key)
{
	char *at = batch + filled;

	if (is_redis)
		request(sprintf(at, "*2\r\n$3\r\nGET\r\n$14\r\nkey-%010zu\r\n", key), 0,
			snprintf(NULL, 0, "$%zu\r\n\r\n", length) + length);
	else
		request(sprintf(at, "get key-%010zu\r\n", key), 0,
			snprintf(NULL, 0, "VALUE key-%010zu 0 %zu\r\n\r\nEND\r\n", key, length) + length);
}

int main(int argc, char **argv)
{
	size_t requests, keys;
	uint64_t state;

	if (argc != 7 || (strcmp(argv[1], "redis") && strcmp(argv[1], "memcached")))
		usage("kvload redis|memcached SOCKET REQUESTS KEYS VALUE-BYTES SEED");
	is_redis = *argv[1] == 'r';
	requests = number(argv[3]);
	keys = number(argv[4]);
	length = number(argv[5]);
	state = number(argv[6]);
	batch = malloc(BATCH * (length + HEAD));
	if (!batch)
		fail("malloc");
	connect_to(argv[2]);
	for (size_t key = 0; key < keys; key++)
		set(key);
	for (size_t i = 0; i < requests; i++) {
		size_t key = next_random(&state) % keys;

		if (i % 4 == 0)
			set(key);
		else
			get(key);
	}
	settle();
	if (is_redis)
		send_all("SHUTDOWN NOSAVE\r\n", 17);
	else
		send_all("shutdown\r\n", 10);
	/* It ends without an answer. */
	while (recv(fd, batch, length, 0) > 0)
		;
	return 0;
}
