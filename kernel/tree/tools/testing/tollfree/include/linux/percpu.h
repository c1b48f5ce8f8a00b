/* SPDX-License-Identifier: GPL-2.0-only */
/* Each thread sets its CPU; the default is 0. */
#ifndef TOLLFREE_LINUX_PERCPU_H
#define TOLLFREE_LINUX_PERCPU_H

enum { TEST_CPUS = 8 };

static __thread unsigned int test_cpu;

#define DEFINE_PER_CPU(type, name)	type name[TEST_CPUS]
#define this_cpu_ptr(all)		(&(*(all))[test_cpu])
#define per_cpu_ptr(all, cpu)		(&(*(all))[cpu])
#define for_each_possible_cpu(cpu)	for ((cpu) = 0; (cpu) < TEST_CPUS; (cpu)++)

#endif
