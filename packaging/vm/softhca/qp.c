// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs: the special ones of ib_mad, and those of programs. */
#include <linux/slab.h>

#include "hca.h"

static bool is_special(const struct ib_qp *q) { return q->qp_type == IB_QPT_SMI || q->qp_type == IB_QPT_GSI; }

/* Gives a queue pair its number and lets packets find it. */
static int qp_number(struct hca *hca, struct qp *qp, struct ib_qp_init_attr *a)
{
	unsigned long flags;
	int rc = 0, n;
	u32 number;

	if (is_special(&qp->ib)) {
		n = a->qp_type == IB_QPT_GSI;
		if (a->port_num < 1 || a->port_num > hca->ib.phys_port_cnt)
			return -EINVAL;
		qp->ib.qp_num = n;
		qp->port = a->port_num;
		spin_lock_irqsave(&hca->qp_lock, flags);
		if (hca->ports[a->port_num].special[n])
			rc = -EBUSY;
		else
			hca->ports[a->port_num].special[n] = qp;
		spin_unlock_irqrestore(&hca->qp_lock, flags);
		return rc;
	}
	rc = xa_alloc_cyclic_irq(&hca->qps, &number, NULL, XA_LIMIT(0x40, 0xffffff), &hca->next_qp, GFP_KERNEL);
	if (rc < 0)
		return rc;
	qp->ib.qp_num = number;
	return xa_err(xa_store_irq(&hca->qps, number, qp, GFP_KERNEL));
}

int hca_create_qp(struct ib_qp *q, struct ib_qp_init_attr *a, struct ib_udata *u)
{
	struct hca *hca = to_hca(q->device);
	struct qp *qp = to_qp(q);

	if (a->qp_type != IB_QPT_SMI && a->qp_type != IB_QPT_GSI && a->qp_type != IB_QPT_UD && a->qp_type != IB_QPT_RC)
		return -EOPNOTSUPP;
	if (!is_special(q) && hca->flags & SOFTHCA_PLANE)
		return -EOPNOTSUPP;
	if (a->srq || a->rwq_ind_tbl || a->create_flags || !a->send_cq || !a->recv_cq)
		return -EOPNOTSUPP;
	if (a->cap.max_send_wr > QP_WR_MAX || a->cap.max_recv_wr > QP_WR_MAX || a->cap.max_send_sge > QP_SGE_MAX ||
	    a->cap.max_recv_sge > QP_SGE_MAX || a->cap.max_inline_data)
		return -EINVAL;
	kref_init(&qp->ref);
	init_completion(&qp->unused);
	spin_lock_init(&qp->lock);
	INIT_LIST_HEAD(&qp->receives);
	INIT_LIST_HEAD(&qp->requests);
	INIT_DELAYED_WORK(&qp->timer, connection_timer);
	qp->state = IB_QPS_RESET;
	qp->cap = a->cap;
	qp->signal_all = a->sq_sig_type == IB_SIGNAL_ALL_WR;
	return qp_number(hca, qp, a);
}

static void qp_unused(struct kref *ref) { complete(&container_of(ref, struct qp, ref)->unused); }
void qp_put(struct qp *qp) { kref_put(&qp->ref, qp_unused); }

struct qp *qp_find(struct hca *hca, u32 port, u32 number)
{
	struct qp *qp;
	unsigned long flags;

	spin_lock_irqsave(&hca->qp_lock, flags);
	qp = number < 2 ? hca->ports[port].special[number] : xa_load(&hca->qps, number);
	if (qp)
		kref_get(&qp->ref);
	spin_unlock_irqrestore(&hca->qp_lock, flags);
	return qp;
}

/* Throws away all that is posted; with b, each gets a completion. Called with qp->lock held. */
static void qp_flush(struct qp *qp, struct batch *b)
{
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .qp = &qp->ib };
	struct request *s, *next_s;
	struct receive *r, *next_r;

	list_for_each_entry_safe(s, next_s, &qp->requests, list) {
		wc.wr_id = s->wr_id;
		wc.opcode = IB_WC_SEND;
		if (b)
			cq_add(b, qp->ib.send_cq, &wc, false);
		kfree(s);
	}
	list_for_each_entry_safe(r, next_r, &qp->receives, list) {
		wc.wr_id = r->wr_id;
		wc.opcode = IB_WC_RECV;
		if (b)
			cq_add(b, qp->ib.recv_cq, &wc, false);
		kfree(r);
	}
	INIT_LIST_HEAD(&qp->requests);
	INIT_LIST_HEAD(&qp->receives);
	qp->request_count = 0;
	qp->receive_count = 0;
	qp->waits_ready = false;
}

void qp_fail(struct qp *qp, struct batch *b)
{
	qp->state = IB_QPS_ERR;
	qp_flush(qp, b);
}

int hca_destroy_qp(struct ib_qp *q, struct ib_udata *u)
{
	struct hca *hca = to_hca(q->device);
	struct qp *qp = to_qp(q);
	unsigned long flags;

	spin_lock_irqsave(&hca->qp_lock, flags);
	if (is_special(q))
		hca->ports[qp->port].special[q->qp_num] = NULL;
	spin_unlock_irqrestore(&hca->qp_lock, flags);
	if (!is_special(q)) {
		xa_erase_irq(&hca->qps, q->qp_num);
		/* Who found it before has its reference after this. */
		spin_lock_irqsave(&hca->qp_lock, flags);
		spin_unlock_irqrestore(&hca->qp_lock, flags);
	}
	spin_lock_irqsave(&qp->lock, flags);
	qp->state = IB_QPS_RESET;	/* the timer is set no more */
	spin_unlock_irqrestore(&qp->lock, flags);
	qp_put(qp);
	wait_for_completion(&qp->unused);
	cancel_delayed_work_sync(&qp->timer);
	qp_flush(qp, NULL);
	cq_purge(to_cq(q->send_cq), q);
	if (q->recv_cq != q->send_cq)
		cq_purge(to_cq(q->recv_cq), q);
	return 0;
}

static void qp_take(struct qp *qp, const struct ib_qp_attr *a, int mask)
{
	struct ib_qp_attr *have = &qp->attr;

	if (mask & IB_QP_PKEY_INDEX)
		have->pkey_index = a->pkey_index;
	if (mask & IB_QP_QKEY)
		have->qkey = a->qkey;
	if (mask & IB_QP_ACCESS_FLAGS)
		have->qp_access_flags = a->qp_access_flags;
	if (mask & IB_QP_PORT)
		qp->port = have->port_num = a->port_num;
	if (mask & IB_QP_AV)
		have->ah_attr = a->ah_attr;
	if (mask & IB_QP_PATH_MTU)
		have->path_mtu = a->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		have->timeout = a->timeout;
	if (mask & IB_QP_RETRY_CNT)
		have->retry_cnt = qp->tries = a->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		have->rnr_retry = qp->ready_tries = a->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER)
		have->min_rnr_timer = a->min_rnr_timer;
	if (mask & IB_QP_DEST_QPN)
		have->dest_qp_num = a->dest_qp_num;
	if (mask & IB_QP_RQ_PSN)
		have->rq_psn = qp->expected_psn = a->rq_psn & 0xffffff;
	if (mask & IB_QP_SQ_PSN)
		have->sq_psn = qp->send_psn = a->sq_psn & 0xffffff;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		have->max_rd_atomic = a->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		have->max_dest_rd_atomic = a->max_dest_rd_atomic;
}

int hca_modify_qp(struct ib_qp *q, struct ib_qp_attr *a, int mask, struct ib_udata *u)
{
	struct hca *hca = to_hca(q->device);
	struct qp *qp = to_qp(q);
	struct batch b = {};
	enum ib_qp_state from, to;
	unsigned long flags;
	int rc = 0;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	if (mask & (IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE | IB_QP_CAP))
		return -EOPNOTSUPP;
	if ((mask & IB_QP_PORT && (a->port_num < 1 || a->port_num > hca->ib.phys_port_cnt)) ||
	    (mask & IB_QP_PKEY_INDEX && a->pkey_index >= hca->pkey_count) ||
	    (mask & IB_QP_PATH_MTU && (a->path_mtu < IB_MTU_256 || a->path_mtu > IB_MTU_4096)))
		return -EINVAL;
	spin_lock_irqsave(&qp->lock, flags);
	from = mask & IB_QP_CUR_STATE ? a->cur_qp_state : qp->state;
	to = mask & IB_QP_STATE ? a->qp_state : from;
	if ((from != qp->state && !(from == IB_QPS_RTS && qp->state == IB_QPS_SQE)) || to == IB_QPS_SQD ||
	    !ib_modify_qp_is_ok(qp->state, to, q->qp_type, mask)) {
		rc = -EINVAL;
	} else {
		qp_take(qp, a, mask);
		qp->state = to;
		if (to == IB_QPS_ERR)
			qp_flush(qp, &b);
		if (to == IB_QPS_RESET)
			qp_flush(qp, NULL);
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	cq_tell(&b);
	if (!rc && to == IB_QPS_RESET) {
		cq_purge(to_cq(q->send_cq), q);
		if (q->recv_cq != q->send_cq)
			cq_purge(to_cq(q->recv_cq), q);
	}
	return rc;
}

int hca_query_qp(struct ib_qp *q, struct ib_qp_attr *a, int mask, struct ib_qp_init_attr *ia)
{
	struct qp *qp = to_qp(q);
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	*a = qp->attr;
	a->ah_attr.grh.sgid_attr = NULL;	/* is the core's, and counted */
	a->qp_state = a->cur_qp_state = qp->state;
	a->port_num = qp->port;
	a->cap = ia->cap = qp->cap;
	a->sq_psn = qp->send_psn;
	a->rq_psn = qp->expected_psn;
	spin_unlock_irqrestore(&qp->lock, flags);
	ia->sq_sig_type = qp->signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	return 0;
}

int hca_post_send(struct ib_qp *q, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	struct qp *qp = to_qp(q);
	struct batch b = {};
	unsigned long flags;
	int rc = 0;

	spin_lock_irqsave(&qp->lock, flags);
	for (; wr; wr = wr->next) {
		struct ib_wc wc = { .wr_id = wr->wr_id, .status = IB_WC_WR_FLUSH_ERR, .opcode = IB_WC_SEND, .qp = q };

		if (qp->state == IB_QPS_ERR || qp->state == IB_QPS_SQE) {
			cq_add(&b, q->send_cq, &wc, false);
			continue;
		}
		if (qp->state != IB_QPS_RTS || wr->num_sge > QP_SGE_MAX ||
		    (wr->opcode != IB_WR_SEND && wr->opcode != IB_WR_SEND_WITH_IMM) || wr->send_flags & IB_SEND_INLINE)
			rc = -EINVAL;
		else if (is_special(q))
			rc = mad_send(qp, wr, &b);
		else if (q->qp_type == IB_QPT_UD)
			rc = datagram_send(qp, wr, &b);
		else
			rc = connection_send(qp, wr, &b);
		if (rc)
			break;
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	cq_tell(&b);
	if (rc)
		*bad = wr;
	return rc;
}

int hca_post_recv(struct ib_qp *q, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct qp *qp = to_qp(q);
	struct batch b = {};
	unsigned long flags;
	int rc = 0;

	spin_lock_irqsave(&qp->lock, flags);
	for (; wr; wr = wr->next) {
		struct ib_wc wc = { .wr_id = wr->wr_id, .status = IB_WC_WR_FLUSH_ERR, .opcode = IB_WC_RECV, .qp = q };
		struct receive *r;

		if (qp->state == IB_QPS_ERR) {
			cq_add(&b, q->recv_cq, &wc, false);
			continue;
		}
		rc = -EINVAL;
		if (qp->state == IB_QPS_RESET || wr->num_sge > QP_SGE_MAX)
			break;
		rc = -ENOMEM;
		if (qp->receive_count >= qp->cap.max_recv_wr)
			break;
		r = kmalloc(sizeof(*r), GFP_ATOMIC);
		if (!r)
			break;
		rc = 0;
		r->wr_id = wr->wr_id;
		r->sges = wr->num_sge;
		if (r->sges)
			memcpy(r->sge, wr->sg_list, r->sges * sizeof(r->sge[0]));
		list_add_tail(&r->list, &qp->receives);
		qp->receive_count++;
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	cq_tell(&b);
	if (rc)
		*bad = wr;
	return rc;
}
