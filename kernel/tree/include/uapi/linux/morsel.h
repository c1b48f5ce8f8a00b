/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * What user space has to know of morselfs: how to tell it from others, and how to attach
 * a file to a device. All else are files.
 */
#ifndef _UAPI_LINUX_MORSEL_H
#define _UAPI_LINUX_MORSEL_H

#include <linux/types.h>

/* f_type of statfs(): "MRSL". */
#define MORSELFS_MAGIC	0x4d52534c

/**
 * struct iommu_morsel_attach - ioctl(IOMMU_MORSEL_ATTACH) of /dev/iommu
 * @size: sizeof(struct iommu_morsel_attach)
 * @flags: must be 0
 * @hwpt_id: ID of a paging HWPT with tables in the format of the CPU
 * @fd: file descriptor of a morsel without missing pages
 * @iova: where to attach it, a multiple of 1 GiB
 * @out_morsel_id: ID of the attachment, for IOMMU_DESTROY
 * @__reserved: must be 0
 *
 * Attaches the page tables of a morsel to those of the HWPT: a device that uses the HWPT
 * can read the file at @iova, and write it unless it is sealed. The range, up to the next
 * multiple of 1 GiB, is reserved in the IOAS. IOMMU_DESTROY detaches: after it the device
 * cannot access the file. The attachment keeps the HWPT and the file.
 *
 * EINVAL: not a morsel, or not aligned. ENODATA: a page is missing. EADDRINUSE: a part of
 * the range is in use. EACCES, EPERM: the device could do what @fd may not. EOPNOTSUPP:
 * no such tables, persistent memory, or morsels are switched off. Map the file by
 * IOMMU_IOAS_MAP then.
 */
struct iommu_morsel_attach {
	__u32 size;
	__u32 flags;
	__u32 hwpt_id;
	__s32 fd;
	__aligned_u64 iova;
	__u32 out_morsel_id;
	__u32 __reserved;
};

/* Beside IOMMUFD_TYPE and its commands in linux/iommufd.h. */
#define IOMMU_MORSEL_ATTACH	_IO(';', 0xa0)

#endif /* _UAPI_LINUX_MORSEL_H */
