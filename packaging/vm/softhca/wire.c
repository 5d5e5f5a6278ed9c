// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Packets: what all kinds have in common. */
#include <linux/slab.h>
#include <asm/unaligned.h>

#include "hca.h"

#define PKEY_BASE	0x7fff
#define PKEY_FULL	0x8000

/* The value of an entry of the adapter's table; 0 is none. */
u16 wire_pkey(struct hca *hca, u32 port, u16 index)
{
	struct port *p = &hca->ports[port];
	unsigned long flags;
	u16 pkey = 0;

	spin_lock_irqsave(&p->lock, flags);
	if (index < hca->pkey_count)
		pkey = p->pkeys[index];
	spin_unlock_irqrestore(&p->lock, flags);
	return pkey & PKEY_BASE ? pkey : 0;
}

/* IBTA volume 1, 10.9.3: the same base, and at most one of the two is a limited member. */
static bool pkey_matches(u16 a, u16 b)
{
	return (a & PKEY_BASE) && (a & PKEY_BASE) == (b & PKEY_BASE) && ((a | b) & PKEY_FULL);
}

int wire_pkey_index(struct hca *hca, u32 port, u16 pkey)
{
	struct port *p = &hca->ports[port];
	unsigned long flags;
	int i, found = -ENOENT;

	spin_lock_irqsave(&p->lock, flags);
	for (i = 0; i < hca->pkey_count && found < 0; i++)
		if (pkey_matches(p->pkeys[i], pkey))
			found = i;
	spin_unlock_irqrestore(&p->lock, flags);
	return found;
}

/* A Q_Key with the highest bit set stands for the queue pair's own (IBTA volume 1, 10.2.5). */
u32 wire_qkey(struct qp *qp, u32 asked) { return asked & 0x80000000 ? qp->attr.qkey : asked; }

/* Whether a queue pair that uses one entry takes a packet. */
bool wire_pkey_admits(struct hca *hca, u32 port, u16 index, u16 pkey)
{
	return pkey_matches(wire_pkey(hca, port, index), pkey);
}

/* A packet with the addresses of an address handle or a connection; its P_Key is put in when it is sent. */
struct message *wire_packet(struct qp *qp, const struct rdma_ah_attr *to, const union ib_gid *sgid, u32 payload)
{
	struct message *m = message_new(SOFTHCA_SEND, qp->port, payload, GFP_ATOMIC);
	const struct ib_global_route *route;
	struct ib_grh *grh;

	if (!m)
		return NULL;
	m->head.source_qp = cpu_to_le32(qp->ib.qp_num);
	m->head.dlid = cpu_to_le16(rdma_ah_get_dlid(to));
	m->head.slid = cpu_to_le16(rdma_ah_get_path_bits(to));
	m->head.flags = SOFTHCA_PATH;
	m->head.sl = rdma_ah_get_sl(to);
	if (!(rdma_ah_get_ah_flags(to) & IB_AH_GRH))
		return m;
	m->head.flags |= SOFTHCA_GRH;
	route = rdma_ah_read_grh(to);
	grh = (struct ib_grh *)m->head.grh;
	put_unaligned_be32(6u << 28 | route->traffic_class << 20 | (route->flow_label & 0xfffff), &grh->version_tclass_flow);
	grh->next_hdr = 0x1b;
	grh->hop_limit = route->hop_limit;
	memcpy(grh->sgid.raw, sgid->raw, 16);
	memcpy(grh->dgid.raw, route->dgid.raw, 16);
	return m;
}

/* Puts a packet on the wire, which may lose it. -ENODEV: there is no adapter any more. */
int wire_send(struct hca *hca, u32 port, struct message *m)
{
	int rc = peer_emit(hca->peer, m);

	if (rc && rc != -ENODEV)
		count(hca, port, COUNT_SEND_LOST);
	return rc;
}

/* Fills a receive with what came, and its completion. The header is what a datagram has in front. */
int receive_fill(struct qp *qp, struct receive *r, const struct softhca_head *head, const u8 *data, u32 size,
		 struct ib_wc *wc)
{
	u32 offset = 0;
	int rc = 0;

	wc->wr_id = r->wr_id;
	wc->opcode = IB_WC_RECV;
	wc->qp = &qp->ib;
	wc->src_qp = le32_to_cpu(head->source_qp);
	wc->slid = le16_to_cpu(head->slid);
	wc->sl = head->sl;
	wc->dlid_path_bits = le16_to_cpu(head->dlid) & 0x7f;
	wc->port_num = qp->port;
	if (head->flags & SOFTHCA_GRH)
		wc->wc_flags |= IB_WC_GRH;
	if (head->flags & SOFTHCA_IMMEDIATE) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = head->immediate;
	}
	if (qp->ib.qp_type != IB_QPT_RC) {
		offset = sizeof(head->grh);
		rc = mr_scatter(qp, r, 0, head->grh, offset);
	}
	if (!rc)
		rc = mr_scatter(qp, r, offset, data, size);
	wc->byte_len = offset + size;
	if (rc)
		wc->status = rc == -EMSGSIZE ? IB_WC_LOC_LEN_ERR : IB_WC_LOC_PROT_ERR;
	return rc;
}

int wire_receive(struct hca *hca, const struct softhca_head *head, const u8 *data, u32 size)
{
	struct batch b = {};
	unsigned long flags;
	struct qp *qp;

	qp = qp_find(hca, head->port, le32_to_cpu(head->dest_qp));
	if (!qp) {
		count(hca, head->port, COUNT_RECEIVE_NO_QP);
		return 0;
	}
	spin_lock_irqsave(&qp->lock, flags);
	if (qp->port != head->port ||
	    (qp->state != IB_QPS_RTR && qp->state != IB_QPS_RTS && qp->state != IB_QPS_SQE))
		count(hca, head->port, COUNT_RECEIVE_NO_QP);
	else if (qp->ib.qp_type == IB_QPT_SMI || qp->ib.qp_type == IB_QPT_GSI)
		mad_receive(qp, head, data, size, &b);
	else if (qp->ib.qp_type == IB_QPT_UD)
		datagram_receive(qp, head, data, size, &b);
	else
		connection_receive(qp, head, data, size, &b);
	spin_unlock_irqrestore(&qp->lock, flags);
	cq_tell(&b);
	qp_put(qp);
	return 0;
}
