// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Packets that go through a pipeline of two processes in shared memory.
 *
 *     pipeline BYTES PACKETS keep|remap SECTION
 *
 * The first process writes each page of a packet into a memfd and passes it on by its descriptor (SCM_RIGHTS); the
 * second reads each page, and answers. `keep`: one memfd whose mappings both keep. `remap`: a packet is a new memfd,
 * mapped and unmapped by both.
 */
#include "section.h"

#include <sys/socket.h>

static void send_packet(int socket, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };

	if (fd >= 0) {
		struct cmsghdr *header;

		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	}
	if (sendmsg(socket, &message, 0) != 1)
		fail("sendmsg");
}

/* The descriptor that came; -1 if none did, -2 at the end. */
static int receive_packet(int socket)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1, .msg_control = control,
				  .msg_controllen = sizeof(control) };
	struct cmsghdr *header;
	ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
	int fd;

	if (got < 0)
		fail("recvmsg");
	if (got == 0)
		return -2;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

static char *map_packet(int fd, size_t length)
{
	char *packet = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (packet == MAP_FAILED)
		fail("mmap");
	return packet;
}

static _Noreturn void consume(int socket, size_t length)
{
	char *packet = NULL;
	volatile uint64_t sum = 0;

	for (;;) {
		int fd = receive_packet(socket);

		if (fd == -2)
			exit(0);
		if (fd >= 0) {
			if (packet)
				munmap(packet, length);
			packet = map_packet(fd, length);
			close(fd);
		}
		for (size_t at = 0; at < length; at += PAGE)
			sum += packet[at];
		send_packet(socket, -1);
	}
}

static int new_packet(size_t length)
{
	int fd = memfd_create("packet", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, length))
		fail("memfd");
	return fd;
}

int main(int argc, char **argv)
{
	size_t length, packets;
	int sockets[2], fd = -1, is_kept;
	char *packet = NULL;
	pid_t child;

	if (argc != 5 || (strcmp(argv[3], "keep") && strcmp(argv[3], "remap")))
		usage("pipeline BYTES PACKETS keep|remap SECTION");
	length = number(argv[1]);
	packets = number(argv[2]);
	is_kept = !strcmp(argv[3], "keep");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets))
		fail("socketpair");
	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0) {
		close(sockets[0]);
		consume(sockets[1], length);
	}
	close(sockets[1]);
	section_begin(argv[4]);
	for (size_t i = 0; i < packets; i++) {
		int is_new = !is_kept || i == 0;

		if (is_new) {
			fd = new_packet(length);
			packet = map_packet(fd, length);
		}
		for (size_t at = 0; at < length; at += PAGE)
			packet[at] = i;
		send_packet(sockets[0], is_new ? fd : -1);
		if (receive_packet(sockets[0]) != -1)
			fail("answer");
		if (!is_kept) {
			munmap(packet, length);
			close(fd);
		}
	}
	section_note("packets", packets);
	section_note("bytes", length);
	section_end();
	close(sockets[0]);
	wait_for_children(1);
	return 0;
}
