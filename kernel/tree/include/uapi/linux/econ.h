/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * prctl(PR_ECON, action, mode, 0, 0): mode of econ for the calling process. See
 * Documentation/admin-guide/mm/econ.rst.
 *
 * The number is provisional: "ECON" in ASCII, outside of the range that Linux assigns.
 */
#ifndef _UAPI_LINUX_ECON_H
#define _UAPI_LINUX_ECON_H

#define PR_ECON			0x45434f4e
/* Return the mode; @mode is 0. */
#define PR_ECON_GET_MODE	0
#define PR_ECON_SET_MODE	1

/* Use the mode of the machine: the mode of a new process. */
#define PR_ECON_MODE_DEFAULT	0
#define PR_ECON_MODE_OFF	1
#define PR_ECON_MODE_OBSERVE	2
#define PR_ECON_MODE_ON		3

#endif /* _UAPI_LINUX_ECON_H */
