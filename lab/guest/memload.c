// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Load for memcached on this machine: values are set under random keys, then some are read back, one request after
 * another.
 *
 *     memload REQUESTS KEYS VALUE-BYTES SECTION
 *
 * Half of the requests are sets, half are gets. A malformed answer is an error.
 */
#include "section.h"

#include <arpa/inet.h>
#include <sys/socket.h>

static int fd;

static void connect_to_server(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(11211),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	/* It may still be starting. */
	for (int tries = 0; tries < 50; tries++) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && !connect(fd, (void *)&address, sizeof(address)))
			return;
		close(fd);
		usleep(100000);
	}
	fail("memcached");
}

static void send_all(const char *data, size_t length)
{
	while (length) {
		ssize_t sent = send(fd, data, length, 0);

		if (sent <= 0)
			fail("send");
		data += sent;
		length -= sent;
	}
}

/* Reads until an answer ends; fails unless it ends with one of these. */
static void expect(char *buffer, size_t size, const char *one, const char *other)
{
	size_t length = 0;

	for (;;) {
		ssize_t got = recv(fd, buffer + length, size - length, 0);

		if (got <= 0)
			fail("recv");
		length += got;
		if (length >= strlen(one) && !memcmp(buffer + length - strlen(one), one, strlen(one)))
			return;
		if (length >= strlen(other) && !memcmp(buffer + length - strlen(other), other, strlen(other)))
			return;
		if (length == size) {
			fprintf(stderr, "memload: no answer: %.40s\n", buffer);
			exit(1);
		}
	}
}

int main(int argc, char **argv)
{
	size_t requests, keys, length;
	uint64_t state = 88172645463325252ull;
	char *buffer;

	if (argc != 5)
		usage("memload REQUESTS KEYS VALUE-BYTES SECTION");
	requests = number(argv[1]);
	keys = number(argv[2]);
	length = number(argv[3]);
	buffer = malloc(length + 256);
	if (!buffer)
		fail("malloc");
	connect_to_server();
	section_begin(argv[4]);
	for (size_t i = 0; i < requests; i++) {
		size_t key = next_random(&state) % keys;
		int head;

		if (i % 2 == 0) {
			head = snprintf(buffer, 256, "set key-%zu 0 0 %zu\r\n", key, length);
			memset(buffer + head, 'a' + key % 26, length);
			memcpy(buffer + head + length, "\r\n", 2);
			send_all(buffer, head + length + 2);
			expect(buffer, length + 256, "STORED\r\n", "STORED\r\n");
		} else {
			head = snprintf(buffer, 256, "get key-%zu\r\n", key);
			send_all(buffer, head);
			expect(buffer, length + 256, "END\r\n", "END\r\n");
		}
	}
	section_note("requests", requests);
	section_end();
	return 0;
}
