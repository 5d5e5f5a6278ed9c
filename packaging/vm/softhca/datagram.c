// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Unreliable datagrams. */
#include <linux/slab.h>

#include "hca.h"

int datagram_send(struct qp *qp, const struct ib_send_wr *wr, struct batch *b)
{
	const struct ib_ud_wr *ud = ud_wr(wr);
	struct hca *hca = hca_of(qp);
	struct ib_wc wc = { .wr_id = wr->wr_id, .opcode = IB_WC_SEND, .qp = &qp->ib };
	u64 length = mr_length(wr->sg_list, wr->num_sge);
	struct message *m = NULL;
	u16 pkey;
	int rc = 0;

	if (!ud->ah)
		return -EINVAL;
	if (length > SOFTHCA_PAYLOAD_MAX) {
		rc = -EMSGSIZE;
	} else {
		m = wire_packet(qp, &to_ah(ud->ah)->attr, &to_ah(ud->ah)->sgid, length);
		if (!m)
			return -ENOMEM;
		rc = mr_gather(qp, wr->sg_list, wr->num_sge, m->data, length, &wc.byte_len);
	}
	if (rc) {
		kfree(m);
		wc.status = rc == -EMSGSIZE ? IB_WC_LOC_LEN_ERR : IB_WC_LOC_PROT_ERR;
		qp->state = IB_QPS_SQE;
		cq_add(b, qp->ib.send_cq, &wc, false);
		return 0;
	}
	pkey = wire_pkey(hca, qp->port, qp->attr.pkey_index);
	m->head.dest_qp = cpu_to_le32(ud->remote_qpn);
	m->head.qkey = cpu_to_le32(wire_qkey(qp, ud->remote_qkey));
	m->head.pkey = cpu_to_le16(pkey);
	if (wr->opcode == IB_WR_SEND_WITH_IMM) {
		m->head.flags |= SOFTHCA_IMMEDIATE;
		m->head.immediate = wr->ex.imm_data;
	}
	if (wr->send_flags & IB_SEND_SOLICITED)
		m->head.flags |= SOFTHCA_SOLICITED;
	if (!pkey) {
		/* The partition is gone: nothing leaves, and a datagram's sender is not told. */
		count(hca, qp->port, COUNT_SEND_BAD_PKEY);
		kfree(m);
	} else if (wire_send(hca, qp->port, m) == -ENODEV) {
		wc.status = IB_WC_WR_FLUSH_ERR;
	}
	if (qp->signal_all || wr->send_flags & IB_SEND_SIGNALED || wc.status)
		cq_add(b, qp->ib.send_cq, &wc, false);
	return 0;
}

void datagram_receive(struct qp *qp, const struct softhca_head *head, const u8 *data, u32 size, struct batch *b)
{
	struct hca *hca = hca_of(qp);
	struct ib_wc wc = {};
	struct receive *r;

	if (head->opcode != SOFTHCA_DATAGRAM) {
		count(hca, qp->port, COUNT_RECEIVE_NO_QP);
		return;
	}
	if (!wire_pkey_admits(hca, qp->port, qp->attr.pkey_index, le16_to_cpu(head->pkey))) {
		count(hca, qp->port, COUNT_RECEIVE_BAD_PKEY);
		return;
	}
	if (le32_to_cpu(head->qkey) != qp->attr.qkey) {
		count(hca, qp->port, COUNT_RECEIVE_BAD_QKEY);
		return;
	}
	r = list_first_entry_or_null(&qp->receives, struct receive, list);
	if (!r) {
		count(hca, qp->port, COUNT_RECEIVE_NO_BUFFER);
		return;
	}
	list_del(&r->list);
	qp->receive_count--;
	wc.pkey_index = qp->attr.pkey_index;
	if (receive_fill(qp, r, head, data, size, &wc)) {
		cq_add(b, qp->ib.recv_cq, &wc, false);
		qp_fail(qp, b);
	} else {
		cq_add(b, qp->ib.recv_cq, &wc, head->flags & SOFTHCA_SOLICITED);
	}
	kfree(r);
}
