// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Makes the kernel drop translations that another CPU uses at that moment, in one way at a time.
 *
 *     stale CASE [ROUNDS [FILE]]
 *     stale list
 *
 * In each round the main thread, on CPU 0, maps a region, lets the toucher on CPU 1 use all of it, does the operation
 * that the case is named after, and at once gives the released frames to new owners. In every second round the toucher
 * uses the region meanwhile, again and again; else it waits in user mode without a system call. A kernel that forgets
 * to flush the other CPU's TLB leaves it with a translation of a frame that has another owner, or with rights that
 * were removed. FILE is overwritten.
 *
 * Prints "CASE: ROUNDS rounds, TOUCHES touches, FAULTS faults of the toucher". `list` prints for each case its name,
 * its rounds, and its needs. A case that the toucher used no page in, or in which the operation changed no
 * translation, has failed. Cases may change settings of the kernel: they are for guests.
 *
 * Status: 0 done, 1 failed, 2 wrong usage, 4 not possible here.
 */
#include "stale_file.h"
#include "stale_hugetlb.h"
#include "stale_luf.h"
#include "stale_morsel.h"
#include "stale_move.h"
#include "stale_published.h"
#include "stale_swap.h"
#include "stale_uffd.h"
#include "stale_unmap.h"

static const struct stale_case {
	const char *name;
	void (*prepare)(void);
	void (*round)(void);
	unsigned int rounds;
	const char *needs;
} cases[] = {
	{ "munmap", NULL, munmap_round, 60, "-" },
	{ "munmap-many", NULL, munmap_many_round, 20, "-" },
	{ "munmap-file", NULL, munmap_file_round, 60, "-" },
	{ "remap-file", NULL, remap_file_round, 60, "-" },
	{ "exit", NULL, exit_round, 20, "-" },
	{ "exec", NULL, exec_round, 10, "-" },
	{ "dontneed", NULL, dontneed_round, 60, "-" },
	{ "free", NULL, free_round, 40, "-" },
	{ "brk", NULL, brk_round, 60, "-" },
	{ "shmdt", NULL, shmdt_round, 40, "SysV shared memory" },
	{ "tables", NULL, tables_round, 40, "-" },
	{ "tables-lazy", NULL, tables_lazy_round, 10, "-" },
	{ "tables-race", NULL, tables_race_round, 40, "-" },
	{ "protect-ro", NULL, protect_ro_round, 60, "-" },
	{ "protect-none", NULL, protect_none_round, 60, "-" },
	{ "protect-noexec", NULL, protect_noexec_round, 60, "-" },
	{ "cow-fork", NULL, cow_fork_round, 20, "-" },
	{ "cow-zero", NULL, cow_zero_round, 60, "-" },
	{ "cow-file", NULL, cow_file_round, 40, "-" },
	{ "fork", NULL, fork_round, 20, "-" },
	{ "madvise-cold", NULL, cold_round, 40, "-" },
	{ "softdirty", softdirty_prepare, softdirty_round, 40, "soft-dirty bits" },
	{ "pagemap-wp", pagemap_wp_prepare, pagemap_wp_round, 40, "PAGEMAP_SCAN (Linux 6.7, CONFIG_PTE_MARKER_UFFD_WP)" },
	{ "uffd-wp", uffd_wp_prepare, uffd_wp_round, 20, "userfaultfd" },
	{ "uffd-move", uffd_move_prepare, uffd_move_round, 40, "UFFDIO_MOVE (Linux 6.8)" },
	{ "truncate", file_prepare, truncate_round, 40, "-" },
	{ "punch", file_prepare, punch_round, 40, "-" },
	{ "msync", disk_prepare, msync_round, 10, "FILE on a disk" },
	{ "pageout-file", pageout_file_prepare, pageout_file_round, 20, "FILE on a disk" },
	{ "pageout", swap_prepare, pageout_round, 40, "zram0" },
	{ "process-madvise", swap_prepare, process_madvise_round, 20, "zram0" },
	{ "swapoff", swap_prepare, swapoff_round, 6, "zram0" },
	{ "reclaim", reclaim_prepare, reclaim_round, 20, "zram0, cgroup v2 with memory" },
	{ "mremap", NULL, mremap_round, 40, "-" },
	{ "mremap-pmd", NULL, mremap_pmd_round, 40, "-" },
	{ "mremap-huge", huge_prepare, mremap_huge_round, 6, "huge pages" },
	{ "huge-munmap", huge_prepare, huge_munmap_round, 6, "huge pages" },
	{ "huge-cow", huge_prepare, huge_cow_round, 6, "huge pages" },
	{ "split", huge_prepare, split_round, 6, "huge pages" },
	{ "split-protect", huge_prepare, split_protect_round, 6, "huge pages" },
	{ "collapse", huge_prepare, collapse_round, 4, "huge pages" },
	{ "collapse-file", huge_prepare, collapse_file_round, 4, "huge pages" },
	{ "migrate", nodes_prepare, migrate_round, 40, "2 nodes" },
	{ "mbind", nodes_prepare, mbind_round, 40, "2 nodes" },
	{ "numa", numa_prepare, numa_round, 6, "CPUs 0 and 1 in 2 nodes, debugfs" },
	{ "compact", compact_prepare, compact_round, 4, "-" },
	{ "ksm", ksm_prepare, ksm_round, 4, "KSM" },
	{ "hugetlb", hugetlb_prepare, hugetlb_round, 4, "4 hugetlb pages" },
	{ "hugetlb-cow", hugetlb_prepare, hugetlb_cow_round, 4, "4 hugetlb pages" },
	{ "hugetlb-unshare", hugetlb_prepare, hugetlb_unshare_round, 6, "4 hugetlb pages" },
	{ "hugetlb-unmap", hugetlb_prepare, hugetlb_unmap_round, 6, "4 hugetlb pages" },
	{ "memory-failure", NULL, memory_failure_round, 4, "memory failure" },
	{ "mremap-punch", mremap_punch_prepare, mremap_punch_round, 10, "3 CPUs" },
	{ "mremap-collapse", mremap_collapse_prepare, mremap_collapse_round, 4, "3 CPUs, huge pages" },
	{ "free-shared", free_shared_prepare, free_shared_round, 4, "huge pages, zram0, cgroup v2 with memory" },
	LUF_CASES,
	MORSEL_CASES,
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static int list(void)
{
	for (size_t i = 0; i < CASES; i++)
		printf("%-16s %3u %s\n", cases[i].name, cases[i].rounds, cases[i].needs);
	return 0;
}

static const struct stale_case *find(const char *name)
{
	for (size_t i = 0; i < CASES; i++)
		if (!strcmp(name, cases[i].name))
			return &cases[i];
	fprintf(stderr, "stale: there is no case %s: see `stale list`\n", name);
	exit(2);
}

/* The toucher gets the second CPU for itself; tables of AREA stay, so that only `tables` frees some. */
static void prepare(const struct stale_case *it)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) || !CPU_ISSET(0, &set) || !CPU_ISSET(1, &set))
		not_possible("this needs CPUs 0 and 1");
	pin(0);
	board_new();
	fill(map_at(AREA + REGION - PAGE, PAGE), PAGE);
	if (it->prepare)
		it->prepare();
}

static int report(const struct stale_case *it)
{
	unsigned long touches = atomic_load(&board->touches);

	printf("%s: %u rounds, %lu touches, %lu faults of the toucher\n", it->name, turn, touches,
	       atomic_load(&board->faults));
	if (!touches)
		fprintf(stderr, "stale: the toucher used nothing\n");
	if (noted.noted && !noted.changed)
		fprintf(stderr, "stale: the operation has changed none of %lu translations\n", noted.noted);
	return !touches || (noted.noted && !noted.changed);
}

int main(int argc, char **argv)
{
	const struct stale_case *it;
	size_t rounds;

	if (argc < 2 || argc > 4)
		usage("stale CASE [ROUNDS [FILE]] | stale list");
	if (!strcmp(argv[1], "list"))
		return list();
	/* A child of `exec` becomes this. */
	if (!strcmp(argv[1], "end"))
		return 0;
	it = find(argv[1]);
	rounds = argc > 2 ? number(argv[2]) : it->rounds;
	given_path = argc > 3 ? argv[3] : NULL;
	prepare(it);
	for (turn = 0; turn < rounds; turn++)
		it->round();
	return report(it);
}
