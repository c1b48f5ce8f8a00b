/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * What user space has to know of morselfs: how to tell it from others. All else
 * are files.
 */
#ifndef _UAPI_LINUX_MORSEL_H
#define _UAPI_LINUX_MORSEL_H

/* f_type of statfs(): "MRSL". */
#define MORSELFS_MAGIC	0x4d52534c

#endif /* _UAPI_LINUX_MORSEL_H */
