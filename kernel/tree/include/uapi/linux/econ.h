/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * prctl(PR_ECON, action, mode, 0, 0): what is done about the decisions of econ for the
 * calling process. See Documentation/admin-guide/mm/econ.rst.
 *
 * The number is provisional: "ECON" in ASCII, out of the range that Linux counts up.
 */
#ifndef _UAPI_LINUX_ECON_H
#define _UAPI_LINUX_ECON_H

#define PR_ECON			0x45434f4e
/* Returns the mode; @mode is 0. */
#define PR_ECON_GET_MODE	0
#define PR_ECON_SET_MODE	1

/* As the machine, which is what a process begins with. */
#define PR_ECON_MODE_DEFAULT	0
#define PR_ECON_MODE_OFF	1
#define PR_ECON_MODE_OBSERVE	2
#define PR_ECON_MODE_ON		3

#endif /* _UAPI_LINUX_ECON_H */
