// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Passes packets through a pipeline of two processes in shared memory.
 *
 *     pipeline BYTES PACKETS keep|remap|new memfd|morsel SECTION
 *
 * The first process writes each page of a packet and passes it on by its descriptor (SCM_RIGHTS); the second reads each
 * page, and answers. `keep`: one buffer, mapped by both throughout. `remap`: one buffer, which each unmaps before the
 * other one maps it. `new`: each packet is a new buffer, mapped and unmapped by both. Buffers are memfds, or files of
 * morselfs (mounted at /morsel). The second process reads a kept one through a mapping that only reads.
 *
 * The section includes the first packet, which has new pages.
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

static size_t length;
static int is_kept, is_recycled, is_morsel;

static char *map_packet(int fd, int protection)
{
	char *packet = mmap(NULL, length, protection, MAP_SHARED, fd, 0);

	if (packet == MAP_FAILED)
		fail("mmap");
	return packet;
}

static _Noreturn void consume(int socket)
{
	/* A writable mapping attaches a morsel as a whole. */
	int protection = is_kept && is_morsel ? PROT_READ : PROT_READ | PROT_WRITE;
	char *packet = NULL;
	volatile uint64_t sum = 0;

	for (;;) {
		int fd = receive_packet(socket);

		if (fd == -2)
			exit(0);
		if (fd >= 0) {
			packet = map_packet(fd, protection);
			close(fd);
		}
		for (size_t at = 0; at < length; at += PAGE)
			sum += packet[at];
		if (!is_kept)
			munmap(packet, length);
		send_packet(socket, -1);
	}
}

static int new_packet(void)
{
	int fd = is_morsel ? open("/morsel", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : memfd_create("packet", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, length))
		fail("packet");
	return fd;
}

static void produce(int socket, size_t packets)
{
	char *packet = NULL;
	int fd = -1;

	for (size_t i = 0; i < packets; i++) {
		if (!is_recycled || i == 0)
			fd = new_packet();
		if (!is_kept || i == 0)
			packet = map_packet(fd, PROT_READ | PROT_WRITE);
		for (size_t at = 0; at < length; at += PAGE)
			packet[at] = i;
		if (!is_kept)
			munmap(packet, length);
		send_packet(socket, is_kept && i > 0 ? -1 : fd);
		if (!is_recycled)
			close(fd);
		if (receive_packet(socket) != -1)
			fail("answer");
	}
}

int main(int argc, char **argv)
{
	size_t packets;
	int64_t began;
	int sockets[2];
	pid_t child;

	if (argc != 6 || (strcmp(argv[3], "keep") && strcmp(argv[3], "remap") && strcmp(argv[3], "new")) ||
	    (strcmp(argv[4], "memfd") && strcmp(argv[4], "morsel")))
		usage("pipeline BYTES PACKETS keep|remap|new memfd|morsel SECTION");
	length = number(argv[1]);
	packets = number(argv[2]);
	is_kept = !strcmp(argv[3], "keep");
	is_recycled = strcmp(argv[3], "new");
	is_morsel = !strcmp(argv[4], "morsel");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets))
		fail("socketpair");
	child = new_child();
	if (child == 0) {
		close(sockets[0]);
		consume(sockets[1]);
	}
	close(sockets[1]);
	section_begin(argv[5]);
	began = clock_ns();
	produce(sockets[0], packets);
	section_note("elapsed_ns", clock_ns() - began);
	section_note("packets", packets);
	section_note("bytes", length);
	section_end();
	close(sockets[0]);
	wait_for_children(1);
	return 0;
}
