// SPDX-License-Identifier: GPL-2.0-only
/* Morsels that are attached to the HWPTs of iommufd. See linux/morsel_device.h. */

#include <linux/file.h>
#include <linux/iommu.h>
#include <linux/morsel_device.h>
#include <linux/pgtable.h>
#include <uapi/linux/morsel.h>

#include "io_pagetable.h"
#include "iommufd_private.h"

/**
 * struct iommufd_morsel - a morsel that is attached
 * @obj: the object
 * @hwpt: HWPT to which it is attached; the object counts as its user
 * @file: the held morsel
 * @iova: where
 * @slots: number of its GiB
 */
struct iommufd_morsel {
	struct iommufd_object obj;
	struct iommufd_hwpt_paging *hwpt;
	struct file *file;
	unsigned long iova;
	unsigned long slots;
};

/* Keep mappings, and other morsels, out of the range. */
static int morsel_reserve(struct iommufd_morsel *morsel)
{
	struct io_pagetable *iopt = &morsel->hwpt->ioas->iopt;
	unsigned long last;

	if (check_add_overflow(morsel->iova, morsel->slots * PUD_SIZE - 1, &last))
		return -EADDRINUSE;
	guard(rwsem_write)(&iopt->iova_rwsem);
	/* Reserved ranges may overlap. */
	if (interval_tree_iter_first(&iopt->reserved_itree, morsel->iova, last))
		return -EADDRINUSE;
	return iopt_reserve_iova(iopt, morsel->iova, last, morsel);
}

static int morsel_attach_held(struct iommufd_morsel *morsel)
{
	int err = morsel_reserve(morsel);

	if (err)
		return err;
	err = intel_iommu_attach_morsel(morsel->hwpt->common.domain, morsel->iova,
					morsel->file, morsel->slots);
	if (err)
		iopt_remove_reserved_iova(&morsel->hwpt->ioas->iopt, morsel);
	return err;
}

static int morsel_attach_file(struct iommufd_morsel *morsel, struct file *file)
{
	long slots = morsel_hold(file);
	int err;

	if (slots < 0)
		return slots;
	morsel->file = file;
	morsel->slots = slots;
	err = morsel_attach_held(morsel);
	if (err)
		morsel_unhold(file);
	return err;
}

static int morsel_attach(struct iommufd_ucmd *ucmd, struct iommufd_hwpt_paging *hwpt)
{
	struct iommu_morsel_attach *cmd = ucmd->cmd;
	struct iommufd_morsel *morsel;
	int err;

	CLASS(fd, f)(cmd->fd);
	if (!fd_file(f))
		return -EBADF;
	morsel = iommufd_object_alloc(ucmd->ictx, morsel, IOMMUFD_OBJ_MORSEL);
	if (IS_ERR(morsel))
		return PTR_ERR(morsel);
	morsel->hwpt = hwpt;
	morsel->iova = cmd->iova;
	err = morsel_attach_file(morsel, fd_file(f));
	if (err) {
		iommufd_object_abort(ucmd->ictx, &morsel->obj);
		return err;
	}
	refcount_inc(&hwpt->common.obj.users);
	cmd->out_morsel_id = morsel->obj.id;
	err = iommufd_ucmd_respond(ucmd, sizeof(*cmd));
	if (err)
		iommufd_object_abort_and_destroy(ucmd->ictx, &morsel->obj);
	else
		iommufd_object_finalize(ucmd->ictx, &morsel->obj);
	return err;
}

/**
 * iommufd_morsel_attach - IOMMU_MORSEL_ATTACH
 * @ucmd: the call
 *
 * Context: may sleep.
 * Return: 0 or an error, see struct iommu_morsel_attach.
 */
int iommufd_morsel_attach(struct iommufd_ucmd *ucmd)
{
	const struct iommu_morsel_attach *cmd = ucmd->cmd;
	struct iommufd_hwpt_paging *hwpt;
	int err;

	if (cmd->flags || cmd->__reserved)
		return -EOPNOTSUPP;
	if (!IS_ALIGNED(cmd->iova, PUD_SIZE))
		return -EINVAL;
	hwpt = iommufd_get_hwpt_paging(ucmd, cmd->hwpt_id);
	if (IS_ERR(hwpt))
		return PTR_ERR(hwpt);
	err = morsel_attach(ucmd, hwpt);
	iommufd_put_object(ucmd->ictx, &hwpt->common.obj);
	return err;
}

/**
 * iommufd_morsel_destroy - detach a morsel
 * @obj: its object
 *
 * Context: may sleep.
 */
void iommufd_morsel_destroy(struct iommufd_object *obj)
{
	struct iommufd_morsel *morsel = container_of(obj, struct iommufd_morsel, obj);

	intel_iommu_detach_morsel(morsel->hwpt->common.domain, morsel->iova, morsel->slots);
	iopt_remove_reserved_iova(&morsel->hwpt->ioas->iopt, morsel);
	morsel_unhold(morsel->file);
	refcount_dec(&morsel->hwpt->common.obj.users);
}
