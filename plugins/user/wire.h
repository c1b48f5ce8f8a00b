/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Protocol by which the preload library, inside the guest, reports an allocation event to
 * the simulator: an unused system call number. The same numbers are defined in
 * crates/toll-model/src/wire.rs; a test compares them.
 */
#ifndef TOLL_WIRE_H
#define TOLL_WIRE_H

/* Arguments: event index, address, length, kind, process, old address (of a move). */
#define TOLL_MAGIC_SYSCALL 0x746f6c6c

enum toll_event {
	TOLL_EVENT_MALLOC = 1,
	TOLL_EVENT_MMAP = 2,
	TOLL_EVENT_MOVE = 3,
	TOLL_EVENT_FREE = 4,
	TOLL_EVENT_PROCESS = 5,
};

#endif
