// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Loops of one system call or fault each, by several threads of one process.
 *
 *     scale mmap|fault|write|flush|fork|udp THREADS ITERATIONS SECTION
 *
 * `mmap` maps and unmaps 128 MiB untouched, `fault` touches 128 pages and returns them (MADV_DONTNEED), `write` 4 KiB
 * to a file of tmpfs, `flush` write-protects a page in use and makes it writable again (mprotect), `fork` a
 * child that ends at once, `udp` a datagram of 1 KiB over the loopback device (its buffers are atomic allocations).
 */
#include "section.h"

#include <netinet/in.h>
#include <sys/socket.h>

static size_t iterations;
/* The loop that was chosen. */
static void (*once)(void);

static void loop_mmap(void)
{
	const size_t length = 128 * MIB;
	void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED || munmap(memory, length))
		fail("mmap");
}

static void loop_fault(void)
{
	enum { PAGES = 128 };
	static __thread char *memory;

	if (!memory)
		memory = reserve(PAGES * PAGE);
	for (size_t page = 0; page < PAGES; page++)
		memory[page * PAGE] = 1;
	if (madvise(memory, PAGES * PAGE, MADV_DONTNEED))
		fail("MADV_DONTNEED");
}

static void loop_write(void)
{
	static __thread int fd;
	static char data[PAGE];

	if (!fd && (fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) < 0)
		fail("/tmp");
	if (pwrite(fd, data, sizeof(data), 0) != sizeof(data))
		fail("pwrite");
}

static void loop_flush(void)
{
	static __thread char *memory;

	if (!memory)
		memory = reserve(PAGE);
	*memory = 1;
	if (mprotect(memory, PAGE, PROT_READ) || mprotect(memory, PAGE, PROT_READ | PROT_WRITE))
		fail("mprotect");
}

static void loop_fork(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	if (child < 0 || waitpid(child, NULL, 0) != child)
		fail("fork");
}

static void loop_udp(void)
{
	static __thread int fd;
	static char data[1024];

	if (!fd) {
		struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
		socklen_t length = sizeof(address);

		fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fd < 0 || bind(fd, (void *)&address, length) || getsockname(fd, (void *)&address, &length) ||
		    connect(fd, (void *)&address, length))
			fail("socket (is lo up?)");
	}
	if (send(fd, data, sizeof(data), 0) < 0 || recv(fd, data, sizeof(data), 0) < 0)
		fail("send");
}

static const struct {
	const char *name;
	void (*once)(void);
} loops[] = {
	{ "mmap", loop_mmap },	 { "fault", loop_fault }, { "write", loop_write },
	{ "flush", loop_flush }, { "fork", loop_fork },	  { "udp", loop_udp },
};

static void *repeat(void *number)
{
	for (size_t i = 0; i < iterations; i++)
		once();
	return number;
}

int main(int argc, char **argv)
{
	const char *text = "scale mmap|fault|write|flush|fork|udp THREADS ITERATIONS SECTION";
	size_t threads, loop = 0;

	if (argc != 5)
		usage(text);
	while (loop < sizeof(loops) / sizeof(*loops) && strcmp(loops[loop].name, argv[1]))
		loop++;
	threads = number(argv[2]);
	iterations = number(argv[3]);
	if (loop == sizeof(loops) / sizeof(*loops) || threads > MAX_THREADS)
		usage(text);
	once = loops[loop].once;
	section_begin(argv[4]);
	in_threads(threads, repeat);
	section_note("iterations", (double)threads * iterations);
	section_end();
	return 0;
}
