// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the driver of a ConnectX asks its firmware (MAD_IFC), this one asks the peer:
 * MADs that the port itself answers. It waits for the answer, but not for ever.
 */
#include <linux/slab.h>
#include <asm/unaligned.h>
#include <rdma/ib_smi.h>

#include "hca.h"

#define MAD_SIZE	256

#define ATTR_NODE_INFO	0x11
#define ATTR_GUID_INFO	0x14
#define ATTR_PORT_INFO	0x15
#define ATTR_PKEY_TABLE	0x16

/* A question that waits for its answer; on the stack of its caller. */
struct question {
	struct list_head list;
	struct completion done;
	u32 token;
	int rc;
	u8 answer[MAD_SIZE];
};

void firmware_cancel(struct peer *peer)
{
	struct question *q, *next;

	list_for_each_entry_safe(q, next, &peer->requests, list) {
		list_del_init(&q->list);
		q->rc = -ENODEV;
		complete(&q->done);
	}
}

int firmware_reply(struct peer *peer, const struct softhca_head *head, const u8 *data, u32 size)
{
	struct question *q;
	struct hca *hca;
	unsigned long flags;
	u32 status = le32_to_cpu(head->status);

	if (!status && size != MAD_SIZE)
		return -EINVAL;
	spin_lock_irqsave(&peer->lock, flags);
	list_for_each_entry(q, &peer->requests, list) {
		if (q->token != le32_to_cpu(head->token))
			continue;
		q->rc = status ? -EIO : 0;
		if (!status)
			memcpy(q->answer, data, MAD_SIZE);
		list_del_init(&q->list);
		complete(&q->done);
		spin_unlock_irqrestore(&peer->lock, flags);
		return 0;
	}
	hca = peer->hca;
	spin_unlock_irqrestore(&peer->lock, flags);
	if (hca && head->port >= 1 && head->port <= hca->ib.phys_port_cnt)
		count(hca, head->port, COUNT_FIRMWARE_LATE);
	return 0;
}

/* Asks, and waits. host: the MAD comes from the host's software, with the addresses in wc. */
static int firmware_ask(struct hca *hca, u32 port, const void *in, void *out, bool host, const struct ib_wc *wc)
{
	struct peer *peer = hca->peer;
	struct question *q;
	struct message *m;
	unsigned long flags;
	int rc;

	q = kzalloc(sizeof(*q), GFP_KERNEL);
	m = message_new(SOFTHCA_REQUEST, port, MAD_SIZE, GFP_KERNEL);
	if (!q || !m) {
		kfree(q);
		kfree(m);
		return -ENOMEM;
	}
	init_completion(&q->done);
	memcpy(m->data, in, MAD_SIZE);
	if (host)
		m->head.flags |= SOFTHCA_HOST;
	if (wc) {
		m->head.slid = cpu_to_le16(wc->slid);
		m->head.source_qp = cpu_to_le32(wc->src_qp);
		m->head.sl = wc->sl;
	}
	spin_lock_irqsave(&peer->lock, flags);
	rc = peer->gone ? -ENODEV : 0;
	if (!rc) {
		q->token = ++peer->token;
		m->head.token = cpu_to_le32(q->token);
		list_add_tail(&q->list, &peer->requests);
	}
	spin_unlock_irqrestore(&peer->lock, flags);
	if (rc) {
		kfree(m);
		goto out;
	}
	rc = peer_emit(peer, m);
	if (!rc && !wait_for_completion_timeout(&q->done, msecs_to_jiffies(READ_ONCE(firmware_timeout_ms))))
		rc = -ETIMEDOUT;
	spin_lock_irqsave(&peer->lock, flags);
	/* An answer or the pull may have come in between: then that counts. */
	if (list_empty(&q->list))
		rc = q->rc;
	else
		list_del_init(&q->list);
	spin_unlock_irqrestore(&peer->lock, flags);
	if (rc == -ETIMEDOUT)
		count(hca, port, COUNT_FIRMWARE_TIMEOUTS);
	if (!rc)
		memcpy(out, q->answer, MAD_SIZE);
out:
	kfree(q);
	return rc;
}

static int firmware_get(struct hca *hca, u32 port, u16 attr, u32 mod, struct ib_smp *smp)
{
	int rc;

	memset(smp, 0, sizeof(*smp));
	smp->base_version = IB_MGMT_BASE_VERSION;
	smp->mgmt_class = IB_MGMT_CLASS_SUBN_LID_ROUTED;
	smp->class_version = 1;
	smp->method = IB_MGMT_METHOD_GET;
	smp->attr_id = cpu_to_be16(attr);
	smp->attr_mod = cpu_to_be32(mod);
	rc = firmware_ask(hca, port, smp, smp, false, NULL);
	if (!rc && be16_to_cpu(smp->status) & 0x1c)
		rc = -EINVAL;
	return rc;
}

/* Between its birth in sysfs and that of its ports: shows the half registered device as long as the peer wants. */
static void firmware_hold(struct hca *hca)
{
	u32 ms = le32_to_cpu(hca->peer->attach.hold_ms);

	if (!ms || hca->held || !device_is_registered(&hca->ib.dev))
		return;
	hca->held = true;
	wait_event_interruptible_timeout(hca->peer->wait, READ_ONCE(hca->peer->gone), msecs_to_jiffies(ms));
}

int hca_query_port(struct ib_device *d, u32 port, struct ib_port_attr *a)
{
	struct hca *hca = to_hca(d);
	struct ib_smp *smp;
	u8 *pi;
	int rc;

	firmware_hold(hca);
	smp = kmalloc(sizeof(*smp), GFP_KERNEL);
	if (!smp)
		return -ENOMEM;
	rc = firmware_get(hca, port, ATTR_PORT_INFO, port, smp);
	if (rc)
		goto out;
	pi = smp->data;
	a->lid = get_unaligned_be16(pi + 16);
	a->sm_lid = get_unaligned_be16(pi + 18);
	a->port_cap_flags = get_unaligned_be32(pi + 20);
	a->active_width = pi[31] & 0xf;
	a->state = pi[32] & 0xf;
	a->phys_state = pi[33] >> 4;
	a->lmc = pi[34] & 7;
	a->active_speed = pi[35] >> 4;
	if (pi[62] >> 4)				/* LinkSpeedExtActive */
		a->active_speed = (pi[62] >> 4) << 4;
	a->active_mtu = pi[36] >> 4;
	a->sm_sl = pi[36] & 0xf;
	a->max_vl_num = pi[37] >> 4;
	a->init_type_reply = pi[41] >> 4;
	a->max_mtu = pi[41] & 0xf;
	a->bad_pkey_cntr = get_unaligned_be16(pi + 46);
	a->qkey_viol_cntr = get_unaligned_be16(pi + 48);
	a->gid_tbl_len = pi[50] ? pi[50] : 1;
	a->subnet_timeout = pi[51] & 0x1f;
	a->max_msg_sz = SOFTHCA_PAYLOAD_MAX;
	a->pkey_tbl_len = hca->pkey_count;
out:
	kfree(smp);
	return rc;
}

int hca_query_gid(struct ib_device *d, u32 port, int index, union ib_gid *gid)
{
	struct ib_smp *smp = kmalloc(sizeof(*smp), GFP_KERNEL);
	int rc;

	if (!smp)
		return -ENOMEM;
	rc = firmware_get(to_hca(d), port, ATTR_PORT_INFO, port, smp);
	if (!rc) {
		memcpy(gid->raw, smp->data + 8, 8);
		rc = firmware_get(to_hca(d), port, ATTR_GUID_INFO, index / 8, smp);
	}
	if (!rc)
		memcpy(gid->raw + 8, smp->data + index % 8 * 8, 8);
	kfree(smp);
	return rc;
}

int hca_query_pkey(struct ib_device *d, u32 port, u16 index, u16 *pkey)
{
	struct ib_smp *smp;
	int rc;

	if (index >= to_hca(d)->pkey_count)
		return -EINVAL;
	smp = kmalloc(sizeof(*smp), GFP_KERNEL);
	if (!smp)
		return -ENOMEM;
	rc = firmware_get(to_hca(d), port, ATTR_PKEY_TABLE, index / 32, smp);
	if (!rc)
		*pkey = get_unaligned_be16(smp->data + index % 32 * 2);
	kfree(smp);
	return rc;
}

/* Reads the adapter's table from the firmware, unless the peer has told it meanwhile. */
int firmware_pkeys(struct hca *hca, u32 port)
{
	struct port *p = &hca->ports[port];
	struct ib_smp *smp = kmalloc(sizeof(*smp), GFP_KERNEL);
	unsigned long flags;
	int rc = 0;
	u32 i, k;

	if (!smp)
		return -ENOMEM;
	for (i = 0; i < hca->pkey_count && !rc; i += 32) {
		rc = firmware_get(hca, port, ATTR_PKEY_TABLE, i / 32, smp);
		spin_lock_irqsave(&p->lock, flags);
		for (k = i; !rc && !p->told && k < min_t(u32, i + 32, hca->pkey_count); k++)
			p->pkeys[k] = get_unaligned_be16(smp->data + (k - i) * 2);
		spin_unlock_irqrestore(&p->lock, flags);
	}
	kfree(smp);
	return rc;
}

/* Linux sets the IsSM bit when the file issmN is open, and bits of the connection manager. */
int hca_modify_port(struct ib_device *d, u32 port, int mask, struct ib_port_modify *change)
{
	struct hca *hca = to_hca(d);
	struct message *m;

	if (!(change->set_port_cap_mask | change->clr_port_cap_mask))
		return 0;
	if (hca->flags & SOFTHCA_FUNCTION && (change->set_port_cap_mask | change->clr_port_cap_mask) & IB_PORT_SM)
		return -EINVAL;	/* as mlx5 says of a bit that the firmware keeps from a function */
	m = message_new(SOFTHCA_CAPABILITY, port, 0, GFP_KERNEL);
	if (!m)
		return -ENOMEM;
	m->head.value = cpu_to_le32(change->set_port_cap_mask);
	m->head.value2 = cpu_to_le32(change->clr_port_cap_mask);
	return peer_emit(hca->peer, m);
}

int hca_process_mad(struct ib_device *d, int flags, u32 port, const struct ib_wc *wc, const struct ib_grh *grh,
		    const struct ib_mad *in, struct ib_mad *out, size_t *out_size, u16 *pkey_index)
{
	struct hca *hca = to_hca(d);
	bool smp = false;

	switch (in->mad_hdr.mgmt_class) {
	case IB_MGMT_CLASS_SUBN_LID_ROUTED:
	case IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE:
		if (in->mad_hdr.attr_id == IB_SMP_ATTR_SM_INFO)
			return IB_MAD_RESULT_SUCCESS;	/* the subnet manager's, if there is one */
		smp = true;
		break;
	case IB_MGMT_CLASS_PERF_MGMT:
		break;
	default:
		return IB_MAD_RESULT_SUCCESS;		/* for an agent */
	}
	if (in->mad_hdr.method != IB_MGMT_METHOD_GET && in->mad_hdr.method != IB_MGMT_METHOD_SET)
		return IB_MAD_RESULT_SUCCESS;
	if (smp && hca->flags & SOFTHCA_FUNCTION)
		return IB_MAD_RESULT_FAILURE;
	if (!smp && hca->flags & SOFTHCA_PLANE)
		return IB_MAD_RESULT_FAILURE;
	if (firmware_ask(hca, port, in, out, true, wc))
		return IB_MAD_RESULT_FAILURE;
	*out_size = sizeof(*out);
	if (in->mad_hdr.mgmt_class == IB_MGMT_CLASS_SUBN_DIRECTED_ROUTE)
		out->mad_hdr.status |= IB_SMP_DIRECTION;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
