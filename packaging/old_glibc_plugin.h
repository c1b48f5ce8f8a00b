// SPDX-License-Identifier: MIT OR Apache-2.0
// Included first in each file of the simulator's plugin that is packaged. glibc 2.34 moved these functions from libpthread,
// with a new version each; the old one is the same function, and QEMU loads libpthread.
__asm__(".symver pthread_rwlock_rdlock,pthread_rwlock_rdlock@GLIBC_2.2.5");
__asm__(".symver pthread_rwlock_wrlock,pthread_rwlock_wrlock@GLIBC_2.2.5");
__asm__(".symver pthread_rwlock_unlock,pthread_rwlock_unlock@GLIBC_2.2.5");
