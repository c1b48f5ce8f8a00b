/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Morsels for programs: memory of any size that one process fills, seals, and hands to others by
 * descriptor over a Unix socket. Nothing is copied, and the receiver can rely on its content: after the seal
 * nobody can change it.
 *
 *     struct morsel m;
 *     morsel_create(&m, directory, size);   mapped writable at m.start
 *     ... fill m.start[0..size] ...
 *     morsel_seal(&m);                   unmapped, immutable
 *     morsel_send(socket, &m);
 *     morsel_drop(&m);
 *
 *     morsel_receive(socket, &m);        refuses if not sealed
 *     morsel_map(&m);                    mapped read-only at m.start
 *     ... read ...
 *     morsel_drop(&m);
 *
 * Each returns 0, or -1 with errno. Where the memory comes from, best first: a file without a name in
 * `directory`, if that is on a file system with sealed files (morselfs); huge pages of
 * the hugetlb pool, if there are enough; otherwise 4 KiB pages. m.from is the source.
 *
 * Include it after defining _GNU_SOURCE. Linux 4.16 or later.
 */
#ifndef MORSEL_H
#define MORSEL_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MORSEL_HUGE ((size_t)2 << 20)
#define MORSEL_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

enum morsel_from {
	MORSEL_UNKNOWN, /* received */
	MORSEL_FILE,    /* morselfs */
	MORSEL_HUGETLB, /* memfd in huge pages */
	MORSEL_MEMFD,   /* memfd in 4 KiB pages */
};

struct morsel {
	int fd;
	enum morsel_from from;
	size_t size;   /* bytes of content */
	size_t length; /* bytes that a mapping takes */
	char *start;   /* NULL while it is not mapped */
};

/* Maps the descriptor. A page that cannot be allocated is an error here, not a signal later. */
static inline int morsel_map_as(struct morsel *m, int protection)
{
	void *start = mmap(NULL, m->length, protection, MAP_SHARED, m->fd, 0);

	if (start == MAP_FAILED)
		return -1;
	m->start = (char *)start;
	return 0;
}

static inline void morsel_unmap(struct morsel *m)
{
	if (m->start)
		munmap(m->start, m->length);
	m->start = NULL;
}

static inline void morsel_drop(struct morsel *m)
{
	int error = errno;

	morsel_unmap(m);
	if (m->fd >= 0)
		close(m->fd);
	m->fd = -1;
	errno = error;
}

/* Sizes and maps what was just opened; takes the descriptor in any case. */
static inline int morsel_begin(struct morsel *m, int fd, enum morsel_from from, size_t size)
{
	size_t page = from == MORSEL_HUGETLB ? MORSEL_HUGE : 4096;

	*m = (struct morsel){ .fd = fd, .from = from, .size = size };
	m->length = (size + page - 1) / page * page;
	if (fd < 0)
		return -1;
	if (ftruncate(fd, from == MORSEL_HUGETLB ? m->length : size) == 0 &&
	    morsel_map_as(m, PROT_READ | PROT_WRITE) == 0)
		return 0;
	morsel_drop(m);
	return -1;
}

/* A file without a name in a directory, if it can be sealed there: otherwise it would stay writable. */
static inline int morsel_open_file(const char *directory)
{
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0 && fcntl(fd, F_GET_SEALS) != 0) {
		close(fd);
		errno = EOPNOTSUPP;
		return -1;
	}
	return fd;
}

/* Makes a morsel of `size` bytes (not 0), mapped writable. `directory` may be NULL. */
static inline int morsel_create(struct morsel *m, const char *directory, size_t size)
{
	unsigned int flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;

	if (size == 0 || size > SIZE_MAX / 2) {
		*m = (struct morsel){ .fd = -1 };
		errno = EINVAL;
		return -1;
	}
	if (directory && morsel_begin(m, morsel_open_file(directory), MORSEL_FILE, size) == 0)
		return 0;
	if (size >= MORSEL_HUGE &&
	    morsel_begin(m, memfd_create("morsel", flags | MFD_HUGETLB), MORSEL_HUGETLB, size) == 0)
		return 0;
	return morsel_begin(m, memfd_create("morsel", flags), MORSEL_MEMFD, size);
}

/* Makes it immutable for ever. EBUSY: somebody else maps it writable. */
static inline int morsel_seal(struct morsel *m)
{
	morsel_unmap(m);
	return fcntl(m->fd, F_ADD_SEALS, MORSEL_SEALS);
}

/* Maps a sealed morsel to read it. */
static inline int morsel_map(struct morsel *m)
{
	return m->start ? 0 : morsel_map_as(m, PROT_READ);
}

/* Eight bytes of size, and room for a descriptor. */
struct morsel_packet {
	uint64_t size;
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr aligned;
	} control;
	struct iovec data;
	struct msghdr message;
};

static inline void morsel_packet_init(struct morsel_packet *packet, uint64_t size)
{
	memset(packet, 0, sizeof(*packet));
	packet->size = size;
	packet->data.iov_base = &packet->size;
	packet->data.iov_len = sizeof(packet->size);
	packet->message.msg_iov = &packet->data;
	packet->message.msg_iovlen = 1;
	packet->message.msg_control = packet->control.bytes;
	packet->message.msg_controllen = sizeof(packet->control.bytes);
}

/* Sends it to the reader of the other end: eight bytes of size, and the descriptor. */
static inline int morsel_send(int socket, const struct morsel *m)
{
	struct morsel_packet packet;
	struct cmsghdr *rights;
	ssize_t sent;

	morsel_packet_init(&packet, m->size);
	rights = CMSG_FIRSTHDR(&packet.message);
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(rights), &m->fd, sizeof(int));
	do
		sent = sendmsg(socket, &packet.message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -1;
	if ((size_t)sent == sizeof(packet.size))
		return 0;
	errno = EIO;
	return -1;
}

/* Whether the received descriptor is a sealed morsel of the announced size; sets errno if not. */
static inline int morsel_check(struct morsel *m)
{
	struct stat is;
	int seals = fcntl(m->fd, F_GET_SEALS);

	if (seals < 0 || fstat(m->fd, &is) < 0)
		return -1;
	if ((seals & (F_SEAL_WRITE | F_SEAL_SHRINK)) != (F_SEAL_WRITE | F_SEAL_SHRINK)) {
		errno = EPERM;
		return -1;
	}
	if (m->size == 0 || is.st_size < 0 || m->size > (uint64_t)is.st_size) {
		errno = EPROTO;
		return -1;
	}
	/* st_blksize is the size of a huge page where the file is made of them. */
	m->length = is.st_size;
	if (is.st_blksize > 0)
		m->length = (m->length + is.st_blksize - 1) / is.st_blksize * is.st_blksize;
	return 0;
}

/* Receives a morsel, not mapped yet. ENODATA: the other end is closed; EPERM: it is not sealed. */
static inline int morsel_receive(int socket, struct morsel *m)
{
	struct morsel_packet packet;
	struct cmsghdr *rights;
	ssize_t got;

	morsel_packet_init(&packet, 0);
	*m = (struct morsel){ .fd = -1 };
	do
		got = recvmsg(socket, &packet.message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -1;
	rights = CMSG_FIRSTHDR(&packet.message);
	if (rights && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
	    rights->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&m->fd, CMSG_DATA(rights), sizeof(int));
	m->size = packet.size;
	if (got == 0)
		errno = ENODATA;
	else if (got != (ssize_t)sizeof(packet.size) || m->fd < 0)
		errno = EPROTO;
	else if (morsel_check(m) == 0)
		return 0;
	morsel_drop(m);
	return -1;
}

static inline const char *morsel_from_name(const struct morsel *m)
{
	static const char *const names[] = { "received", "morselfs", "hugetlb memfd", "memfd" };

	return names[m->from];
}

#endif
