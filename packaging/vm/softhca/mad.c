// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs 0 and 1: management datagrams. */
#include <linux/slab.h>

#include "hca.h"

/* Which of the two the adapter keeps from this function or plane. */
static bool barred(struct qp *qp)
{
	return hca_of(qp)->flags & (qp->ib.qp_num ? SOFTHCA_PLANE : SOFTHCA_FUNCTION);
}

int mad_send(struct qp *qp, const struct ib_send_wr *wr, struct batch *b)
{
	const struct ib_ud_wr *ud = ud_wr(wr);
	struct hca *hca = hca_of(qp);
	struct ib_wc wc = { .wr_id = wr->wr_id, .opcode = IB_WC_SEND, .qp = &qp->ib };
	struct message *m;
	u16 pkey = 0;
	u32 length;
	int rc;

	if (barred(qp))
		return -EPERM;		/* as mlx5 does where the function has no SMI */
	if (!ud->ah || mr_length(wr->sg_list, wr->num_sge) != IB_MGMT_MAD_SIZE)
		return -EINVAL;
	m = wire_packet(qp, &to_ah(ud->ah)->attr, &to_ah(ud->ah)->sgid, IB_MGMT_MAD_SIZE);
	if (!m)
		return -ENOMEM;
	rc = mr_gather(qp, wr->sg_list, wr->num_sge, m->data, IB_MGMT_MAD_SIZE, &length);
	if (rc) {
		kfree(m);
		return rc;
	}
	m->head.dest_qp = cpu_to_le32(ud->remote_qpn);
	if (qp->ib.qp_num == 1) {
		pkey = wire_pkey(hca, qp->port, ud->pkey_index);
		m->head.qkey = cpu_to_le32(wire_qkey(qp, ud->remote_qkey));
		m->head.pkey = cpu_to_le16(pkey);
	}
	wc.byte_len = length;
	if (qp->ib.qp_num == 1 && !pkey) {
		/* There is nothing to put into the header. */
		count(hca, qp->port, COUNT_SEND_BAD_PKEY);
		kfree(m);
	} else if (wire_send(hca, qp->port, m) == -ENODEV) {
		wc.status = IB_WC_WR_FLUSH_ERR;
	}
	cq_add(b, qp->ib.send_cq, &wc, false);
	return 0;
}

void mad_receive(struct qp *qp, const struct softhca_head *head, const u8 *data, u32 size, struct batch *b)
{
	struct hca *hca = hca_of(qp);
	struct ib_wc wc = {};
	struct receive *r;
	int index = 0;

	if (barred(qp) || size != IB_MGMT_MAD_SIZE) {
		count(hca, qp->port, COUNT_RECEIVE_NO_QP);
		return;
	}
	if (qp->ib.qp_num == 1) {
		index = wire_pkey_index(hca, qp->port, le16_to_cpu(head->pkey));
		if (index < 0) {
			count(hca, qp->port, COUNT_RECEIVE_BAD_PKEY);
			return;
		}
		if (le32_to_cpu(head->qkey) != IB_QP1_QKEY) {
			count(hca, qp->port, COUNT_RECEIVE_BAD_QKEY);
			return;
		}
	}
	r = list_first_entry_or_null(&qp->receives, struct receive, list);
	if (!r) {
		count(hca, qp->port, COUNT_RECEIVE_NO_BUFFER);
		return;
	}
	list_del(&r->list);
	qp->receive_count--;
	receive_fill(qp, r, head, data, size, &wc);
	wc.pkey_index = index;
	kfree(r);
	cq_add(b, qp->ib.recv_cq, &wc, false);
}
