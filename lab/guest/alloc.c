// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Asks the kernel for pages (toll_lab_alloc in debugfs), which counts the instructions of each allocation.
 *
 *     alloc SECTION paced ORDER kernel|huge|atomic COUNT KEEP MICROSECONDS
 *     alloc SECTION storm ORDER kernel|huge|atomic COUNT BURST
 *     alloc wait
 *
 * Paced: so many allocations, the last KEEP of them held, with a pause after each. Storm: as many in bursts, each of
 * which is held as a whole and then freed; the next one begins when other programs have taken what was freed and the
 * kernel reclaims again. Something else has to use memory meanwhile. What could not be allocated is counted, and no
 * error; the end says how many that were. Wait: ends when the kernel reclaims.
 */
#include "section.h"

#define ASK "/sys/kernel/debug/toll_lab_alloc"

/* Who has reclaimed so many pages more was not just finishing what it had begun. */
enum { RECLAIMS_AGAIN = 1000, POLL_US = 5000, MAX_POLLS = 20000 };

static void ask(int fd, const char *order, const char *how, size_t count, size_t keep, size_t pause)
{
	char line[128];
	int length = snprintf(line, sizeof(line), "%s %s %zu %zu %zu", order, how, count, keep, pause);

	if (write(fd, line, length) != length)
		fail(line);
}

static void show(int fd)
{
	char text[128];
	ssize_t length = pread(fd, text, sizeof(text), 0);

	if (length <= 0)
		fail(ASK);
	fwrite(text, 1, length, stdout);
}

static long long reclaimed(void)
{
	static char text[SECTION_STAT_SIZE];

	section_read_stat(text);
	return section_stat(text, "pgsteal_kswapd", 14) + section_stat(text, "pgsteal_direct", 14);
}

static void wait_for_reclaim(void)
{
	long long before = reclaimed();

	for (int polls = 0; reclaimed() < before + RECLAIMS_AGAIN; polls++) {
		if (polls == MAX_POLLS) {
			fprintf(stderr, "alloc: nothing is reclaimed: memory is not short\n");
			exit(1);
		}
		usleep(POLL_US);
	}
}

int main(int argc, char **argv)
{
	int fd, is_storm = argc == 7 && !strcmp(argv[2], "storm");
	size_t count, held;

	if (argc == 2 && !strcmp(argv[1], "wait")) {
		wait_for_reclaim();
		return 0;
	}
	if (!is_storm && (argc != 8 || strcmp(argv[2], "paced")))
		usage("alloc SECTION paced|storm ORDER kernel|huge|atomic COUNT KEEP|BURST [MICROSECONDS]");
	count = number(argv[5]);
	held = number(argv[6]);
	fd = open(ASK, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		fail(ASK);
	section_begin(argv[1]);
	if (is_storm) {
		for (size_t left = count; left; left -= left < held ? left : held) {
			wait_for_reclaim();
			ask(fd, argv[3], argv[4], left < held ? left : held, held, 0);
		}
	} else {
		ask(fd, argv[3], argv[4], count, held, number(argv[7]));
	}
	section_end();
	show(fd);
	return 0;
}
