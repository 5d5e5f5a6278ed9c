// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory. Work requests of the kernel have addresses of its own, since the device has
 * no DMA; those of programs have a key of a memory region, which pins their pages.
 */
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "hca.h"

struct ib_mr *hca_get_dma_mr(struct ib_pd *pd, int access)
{
	struct mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	return mr ? &mr->ib : ERR_PTR(-ENOMEM);
}

struct ib_mr *hca_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt, int access, struct ib_udata *u)
{
	struct hca *hca = to_hca(pd->device);
	struct mr *mr;
	u32 key;
	int rc;

	if (access & ~(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_OPTIONAL))
		return ERR_PTR(-EOPNOTSUPP);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->umem = ib_umem_get(pd->device, start, length, access);
	if (IS_ERR(mr->umem)) {
		rc = PTR_ERR(mr->umem);
		goto free;
	}
	mr->start = virt;
	mr->length = length;
	mr->writable = access & IB_ACCESS_LOCAL_WRITE;
	mr->ib.pd = pd;
	rc = xa_alloc_cyclic_irq(&hca->mrs, &key, mr, XA_LIMIT(1, 0xffffff), &hca->next_mr, GFP_KERNEL);
	if (rc < 0)
		goto release;
	/* A key is good only after this: lookups compare it. */
	WRITE_ONCE(mr->ib.rkey, key << 8);
	WRITE_ONCE(mr->ib.lkey, key << 8);
	return &mr->ib;

release:
	ib_umem_release(mr->umem);
free:
	kfree(mr);
	return ERR_PTR(rc);
}

int hca_dereg_mr(struct ib_mr *m, struct ib_udata *u)
{
	struct hca *hca = to_hca(m->device);
	struct mr *mr = to_mr(m);
	unsigned long flags;

	if (mr->umem) {
		xa_erase_irq(&hca->mrs, m->lkey >> 8);
		/* Who found it before is done with it after this. */
		spin_lock_irqsave(&hca->mr_lock, flags);
		spin_unlock_irqrestore(&hca->mr_lock, flags);
		ib_umem_release(mr->umem);
	}
	kfree(mr);
	return 0;
}

/* The region that holds a range, with mr_lock held; NULL: the program may not use it. */
static struct mr *mr_find(struct hca *hca, struct qp *qp, const struct ib_sge *sge, bool write)
{
	struct mr *mr = xa_load(&hca->mrs, sge->lkey >> 8);

	if (!mr || READ_ONCE(mr->ib.lkey) != sge->lkey || mr->ib.pd != qp->ib.pd || (write && !mr->writable))
		return NULL;
	if (sge->addr < mr->start || sge->length > mr->length || sge->addr - mr->start > mr->length - sge->length)
		return NULL;
	return mr;
}

static int mr_copy(struct qp *qp, const struct ib_sge *sge, u8 *data, u32 length, u32 offset, bool write)
{
	struct hca *hca = hca_of(qp);
	struct ib_umem *umem;
	struct mr *mr;
	unsigned long flags;
	size_t done = 0;

	if (!qp->ib.uobject) {
		u8 *at = (u8 *)(uintptr_t)sge->addr + offset;

		memcpy(write ? at : data, write ? data : at, length);
		return 0;
	}
	spin_lock_irqsave(&hca->mr_lock, flags);
	mr = mr_find(hca, qp, sge, write);
	if (mr) {
		off_t from = sge->addr - mr->start + offset;

		umem = mr->umem;
		from += ib_umem_offset(umem);
		if (write)
			done = sg_pcopy_from_buffer(umem->sgt_append.sgt.sgl, umem->sgt_append.sgt.orig_nents,
						    data, length, from);
		else
			done = sg_pcopy_to_buffer(umem->sgt_append.sgt.sgl, umem->sgt_append.sgt.orig_nents,
						  data, length, from);
	}
	spin_unlock_irqrestore(&hca->mr_lock, flags);
	return mr && done == length ? 0 : -EFAULT;
}

u64 mr_length(const struct ib_sge *sge, int n)
{
	u64 sum = 0;

	while (n--)
		sum += sge++->length;
	return sum;
}

/* Copies what a send names: -EMSGSIZE if it does not fit, -EFAULT if it may not be read. */
int mr_gather(struct qp *qp, const struct ib_sge *sge, int n, u8 *to, u32 room, u32 *length)
{
	*length = 0;
	for (; n; n--, sge++) {
		if (sge->length > room - *length)
			return -EMSGSIZE;
		if (sge->length && mr_copy(qp, sge, to + *length, sge->length, 0, false))
			return -EFAULT;
		*length += sge->length;
	}
	return 0;
}

/* Copies into what a receive names, from an offset of it on. */
int mr_scatter(struct qp *qp, const struct receive *r, u32 offset, const u8 *from, u32 length)
{
	u32 i, n;

	for (i = 0; i < r->sges && length; i++) {
		const struct ib_sge *sge = &r->sge[i];

		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		n = min(length, sge->length - offset);
		if (mr_copy(qp, sge, (u8 *)from, n, offset, true))
			return -EFAULT;
		from += n;
		length -= n;
		offset = 0;
	}
	return length ? -EMSGSIZE : 0;
}
