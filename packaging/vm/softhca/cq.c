// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion queues: rings of a fixed size. */
#include <linux/mm.h>
#include <linux/slab.h>

#include "hca.h"

int hca_create_cq(struct ib_cq *c, const struct ib_cq_init_attr *a, struct ib_udata *u)
{
	struct cq *cq = to_cq(c);

	if (a->cqe < 1 || a->cqe > CQE_MAX || a->flags)
		return -EINVAL;
	cq->ring = kvcalloc(a->cqe, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	spin_lock_init(&cq->lock);
	cq->size = a->cqe;
	c->cqe = a->cqe;
	return 0;
}

int hca_destroy_cq(struct ib_cq *c, struct ib_udata *u)
{
	kvfree(to_cq(c)->ring);
	return 0;
}

static void note(struct ib_cq **list, struct ib_cq *c)
{
	if (!list[0] || list[0] == c)
		list[0] = c;
	else
		list[1] = c;
}

void cq_add(struct batch *b, struct ib_cq *c, const struct ib_wc *wc, bool solicited)
{
	struct cq *cq = to_cq(c);
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->count < cq->size) {
		cq->ring[(cq->first + cq->count++) % cq->size] = *wc;
		if (cq->armed && (!cq->solicited || solicited || wc->status != IB_WC_SUCCESS)) {
			cq->armed = false;
			note(b->notify, c);
		}
	} else if (!cq->overflowed) {
		cq->overflowed = true;
		note(b->broken, c);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
}

void cq_tell(struct batch *b)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct ib_cq *c = b->notify[i];

		if (c && c->comp_handler)
			c->comp_handler(c, c->cq_context);
		c = b->broken[i];
		if (c && c->event_handler) {
			struct ib_event e = { .device = c->device, .event = IB_EVENT_CQ_ERR, .element.cq = c };

			c->event_handler(&e, c->cq_context);
		}
	}
}

int hca_poll_cq(struct ib_cq *c, int n, struct ib_wc *wc)
{
	struct cq *cq = to_cq(c);
	unsigned long flags;
	int i;

	spin_lock_irqsave(&cq->lock, flags);
	for (i = 0; i < n && cq->count; i++) {
		wc[i] = cq->ring[cq->first];
		cq->first = (cq->first + 1) % cq->size;
		cq->count--;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return i;
}

int hca_req_notify_cq(struct ib_cq *c, enum ib_cq_notify_flags how)
{
	struct cq *cq = to_cq(c);
	unsigned long flags;
	int missed;

	spin_lock_irqsave(&cq->lock, flags);
	cq->solicited = (how & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	cq->armed = true;
	missed = (how & IB_CQ_REPORT_MISSED_EVENTS) && cq->count;
	spin_unlock_irqrestore(&cq->lock, flags);
	return missed;
}

/* Takes out what a queue pair that is going away left: a completion names it. */
void cq_purge(struct cq *cq, struct ib_qp *qp)
{
	unsigned long flags;
	u32 i, kept = 0;

	spin_lock_irqsave(&cq->lock, flags);
	for (i = 0; i < cq->count; i++) {
		struct ib_wc *wc = &cq->ring[(cq->first + i) % cq->size];

		if (wc->qp != qp)
			cq->ring[(cq->first + kept++) % cq->size] = *wc;
	}
	cq->count = kept;
	spin_unlock_irqrestore(&cq->lock, flags);
}
