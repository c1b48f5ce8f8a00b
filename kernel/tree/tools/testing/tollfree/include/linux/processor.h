/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef TOLLFREE_LINUX_PROCESSOR_H
#define TOLLFREE_LINUX_PROCESSOR_H

#define cpu_relax()	do { } while (0)

#endif
