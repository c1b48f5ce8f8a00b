// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * QEMU's device `edu`, driven by VFIO, with an address space of iommufd. It copies up to 4 KiB from memory to a buffer of
 * its own, and from there to memory. The structures are those of linux/iommufd.h, linux/vfio.h and linux/morsel.h, which
 * the headers of the host may lack.
 */
#ifndef EDU_H
#define EDU_H

#include "util.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/ioctl.h>

#define IOMMU_CALL(nr)	_IO(';', nr)

enum {
	CALL_DESTROY = 0x80,
	CALL_IOAS_ALLOC = 0x81,
	CALL_IOAS_MAP = 0x85,
	CALL_IOAS_UNMAP = 0x86,
	CALL_HWPT_ALLOC = 0x89,
	CALL_MORSEL_ATTACH = 0xa0,
	CALL_REGION_INFO = 108,
	CALL_BIND = 118,
	CALL_ATTACH = 119,
};

enum { MAP_AT = 1, MAP_WRITABLE = 2, MAP_READABLE = 4 };

struct call_destroy {
	uint32_t size, id;
};

struct call_ioas_alloc {
	uint32_t size, flags, out_ioas_id;
};

struct call_map {
	uint32_t size, flags, ioas_id, reserved;
	uint64_t user_va, length, iova;
};

struct call_unmap {
	uint32_t size, ioas_id;
	uint64_t iova, length;
};

struct call_hwpt_alloc {
	uint32_t size, flags, dev_id, pt_id, out_hwpt_id, reserved, data_type, data_len;
	uint64_t data;
	uint32_t fault_id, reserved2;
};

struct call_morsel {
	uint32_t size, flags, hwpt_id;
	int32_t fd;
	uint64_t iova;
	uint32_t out_morsel_id, reserved;
};

struct call_bind {
	uint32_t size, flags;
	int32_t iommufd;
	uint32_t out_devid;
};

struct call_attach {
	uint32_t size, flags, pt_id;
};

struct call_region {
	uint32_t size, flags, index, cap_offset;
	uint64_t length, offset;
};

/* Registers, and the device's address of its buffer. */
enum { EDU_SOURCE = 0x80, EDU_TARGET = 0x88, EDU_COUNT = 0x90, EDU_COMMAND = 0x98, EDU_BUFFER = 0x40000 };
/* Bits of the command: the transfer is under way; it is from the device. */
enum { EDU_RUN = 1, EDU_OUT = 2 };
enum { PCI_CONFIG = 7, PCI_COMMAND = 4, PCI_MEMORY_AND_MASTER = 6 };

/* Where the device sees `page`, far from what is measured. */
#define EDU_PAGE_AT	(1ul << 40)

static struct edu {
	int iommu, device;
	uint32_t ioas, hwpt;
	volatile char *registers;
	char *page;
} edu;

static inline void edu_write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		fail(path);
	close(fd);
}

static inline bool edu_is(const char *name)
{
	char path[300], text[16] = "";
	int fd;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/device", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
		fail(path);
	close(fd);
	return !strncmp(text, "0x11e8", 6);
}

/* Gives the device to vfio-pci. */
static inline void edu_bind(void)
{
	DIR *directory = opendir("/sys/bus/pci/devices");
	struct dirent *entry = NULL;
	char path[300];

	while (directory && (entry = readdir(directory)) && !edu_is(entry->d_name))
		;
	if (!entry)
		fail("no device 11e8");
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver_override", entry->d_name);
	edu_write_text(path, "vfio-pci");
	edu_write_text("/sys/bus/pci/drivers_probe", entry->d_name);
	closedir(directory);
}

/* Returns 0, or the negative errno. */
static inline int edu_call(int fd, int call, void *argument)
{
	return ioctl(fd, IOMMU_CALL(call), argument) ? -errno : 0;
}

static inline int edu_destroy(uint32_t id)
{
	return edu_call(edu.iommu, CALL_DESTROY, &(struct call_destroy){ sizeof(struct call_destroy), id });
}

static inline int edu_map(const void *memory, size_t length, uint64_t iova, uint32_t rights)
{
	return edu_call(edu.iommu, CALL_IOAS_MAP,
			&(struct call_map){ sizeof(struct call_map), MAP_AT | rights, edu.ioas, 0,
					    (uintptr_t)memory, length, iova });
}

static inline int edu_unmap(uint64_t iova, size_t length)
{
	return edu_call(edu.iommu, CALL_IOAS_UNMAP,
			&(struct call_unmap){ sizeof(struct call_unmap), edu.ioas, iova, length });
}

static inline int edu_attach_morsel(int fd, uint64_t iova, uint32_t *id)
{
	struct call_morsel call = { sizeof(call), 0, edu.hwpt, fd, iova, 0, 0 };
	int err = edu_call(edu.iommu, CALL_MORSEL_ATTACH, &call);

	*id = call.out_morsel_id;
	return err;
}

static inline void edu_attach_tables(void)
{
	struct call_bind bind = { sizeof(bind), 0, edu.iommu, 0 };
	struct call_ioas_alloc ioas = { sizeof(ioas), 0, 0 };
	struct call_hwpt_alloc hwpt = { .size = sizeof(hwpt) };
	struct call_attach attach = { .size = sizeof(attach) };

	if (edu_call(edu.device, CALL_BIND, &bind) || edu_call(edu.iommu, CALL_IOAS_ALLOC, &ioas))
		fail("iommufd");
	hwpt.dev_id = bind.out_devid;
	hwpt.pt_id = edu.ioas = ioas.out_ioas_id;
	if (edu_call(edu.iommu, CALL_HWPT_ALLOC, &hwpt))
		fail("HWPT");
	attach.pt_id = edu.hwpt = hwpt.out_hwpt_id;
	if (edu_call(edu.device, CALL_ATTACH, &attach))
		fail("attach of the device");
}

static inline struct call_region edu_region(uint32_t index)
{
	struct call_region region = { sizeof(region), 0, index, 0, 0, 0 };

	if (edu_call(edu.device, CALL_REGION_INFO, &region))
		fail("region");
	return region;
}

static inline void edu_open(void)
{
	struct call_region config, bar;
	uint16_t command = PCI_MEMORY_AND_MASTER;

	edu_bind();
	edu.iommu = open("/dev/iommu", O_RDWR | O_CLOEXEC);
	edu.device = open("/dev/vfio/devices/vfio0", O_RDWR | O_CLOEXEC);
	if (edu.iommu < 0 || edu.device < 0)
		fail("iommufd or VFIO");
	edu_attach_tables();
	config = edu_region(PCI_CONFIG);
	bar = edu_region(0);
	if (pwrite(edu.device, &command, sizeof(command), config.offset + PCI_COMMAND) != sizeof(command))
		fail("bus master");
	edu.registers = mmap(NULL, bar.length, PROT_READ | PROT_WRITE, MAP_SHARED, edu.device, bar.offset);
	edu.page = anonymous(PAGE);
	if (edu.registers == MAP_FAILED || edu_map(edu.page, PAGE, EDU_PAGE_AT, MAP_READABLE | MAP_WRITABLE))
		fail("registers");
}

static inline void edu_set(int at, uint64_t value)
{
	*(volatile uint64_t *)(edu.registers + at) = value;
}

static inline void edu_run(uint64_t source, uint64_t target, uint32_t command)
{
	edu_set(EDU_SOURCE, source);
	edu_set(EDU_TARGET, target);
	edu_set(EDU_COUNT, PAGE);
	edu_set(EDU_COMMAND, EDU_RUN | command);
	while (*(volatile uint64_t *)(edu.registers + EDU_COMMAND) & EDU_RUN)
		usleep(1000);
}

/* Lets the device read a page. Returns what it got, or what `edu.page` had before if it got nothing. */
static inline const char *edu_read(uint64_t iova)
{
	edu_run(EDU_PAGE_AT, EDU_BUFFER, 0);
	edu_run(iova, EDU_BUFFER, 0);
	edu_run(EDU_BUFFER, EDU_PAGE_AT, EDU_OUT);
	return edu.page;
}

/* Lets the device write what is in `edu.page`. */
static inline void edu_write(uint64_t iova)
{
	edu_run(EDU_PAGE_AT, EDU_BUFFER, 0);
	edu_run(EDU_BUFFER, iova, EDU_OUT);
}

#endif
