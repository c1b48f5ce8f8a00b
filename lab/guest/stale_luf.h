// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Cases of lazy unmap flush: pages that are read-only and clean are reclaimed while the toucher waits in user mode and
 * keeps its translations. Then comes what must not happen before a flush: new owners of the frames, or a new content
 * of the addresses, which the toucher reads again.
 */
#ifndef STALE_LUF_H
#define STALE_LUF_H

#include "stale_luf_change.h"
#include "stale_luf_compact.h"
#include "stale_luf_pool.h"
#include "stale_luf_race.h"

#define LUF_CASES \
	{ "luf-cap", luf_cap_prepare, luf_cap_round, 20, "LUF, FILE on a disk" }, \
	{ "luf-refused", luf_refused_prepare, luf_cap_round, 20, "LUF, FILE on a disk" }, \
	{ "luf-age", luf_age_prepare, luf_age_round, 20, "LUF, FILE on a disk" }, \
	{ "luf-batches", luf_cap_prepare, luf_batches_round, 20, "LUF, FILE on a disk" }, \
	{ "luf-kept", luf_kept_prepare, luf_kept_round, 20, "LUF, FILE on a disk" }, \
	{ "luf-compact-pool", luf_compact_pool_prepare, luf_compact_pool_round, 4, "LUF, FILE on a disk" }, \
	{ "luf-compact", luf_compact_prepare, luf_compact_round, 6, "LUF, FILE on a disk" }, \
	{ "luf-shortage", luf_shortage_prepare, luf_shortage_round, 3, "LUF, FILE on a disk" }, \
	{ "luf-lazy", luf_lazy_prepare, luf_lazy_round, 20, "LUF, FILE on a disk" }, \
	{ "luf-in-flight", luf_in_flight_prepare, luf_in_flight_round, 20, "LUF, FILE on a disk, 3 CPUs" }, \
	{ "luf-late-writer", luf_late_writer_prepare, luf_late_writer_round, 20, "LUF, FILE on a disk, 3 CPUs" }, \
	{ "luf-late-flush", luf_late_flush_prepare, luf_late_flush_round, 6, "LUF, zram0, 3 CPUs" }, \
	{ "luf-write", luf_file_prepare, luf_write_round, 10, "LUF, FILE on a disk" }, \
	{ "luf-writer", luf_writer_prepare, luf_writer_round, 10, "LUF, FILE on a disk" }, \
	{ "luf-memfd", luf_memfd_prepare, luf_memfd_round, 20, "LUF, zram0" }, \
	{ "luf-swap", luf_swap_prepare, luf_swap_round, 20, "LUF, zram0" }, \
	{ "luf-reuse", luf_reuse_prepare, luf_reuse_round, 20, "LUF, zram0, cgroup v2 with memory" }, \
	{ "luf-poke", luf_swap_prepare, luf_poke_round, 20, "LUF, zram0" }, \
	{ "luf-private", luf_file_prepare, luf_private_round, 20, "LUF, FILE on a disk" }, \
	{ "luf-move", luf_move_prepare, luf_move_round, 20, "LUF, zram0, UFFDIO_MOVE (Linux 6.8)" }, \
	{ "luf-free", luf_prepare, luf_free_round, 20, "LUF" }, \
	{ "luf-remap", luf_file_prepare, luf_remap_round, 20, "LUF, FILE on a disk" }

#endif
