/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _LINUX_TOLLFREE_H
#define _LINUX_TOLLFREE_H

#include <linux/kobject.h>

/* The patch queue's version; user space reads it in sysfs. */
#define TOLLFREE_VERSION "0.1"

/**
 * tollfree_kobj - /sys/kernel/mm/tollfree
 *
 * Created by a subsys_initcall, NULL if that failed. Mechanisms add their
 * directories from a later initcall.
 */
extern struct kobject *tollfree_kobj;

#endif /* _LINUX_TOLLFREE_H */
