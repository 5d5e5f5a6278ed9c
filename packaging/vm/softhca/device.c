// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The InfiniBand device: its verbs, its attributes, its birth and its end. */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "hca.h"

/* How long a name that is in use is waited for: its last owner may be going away. */
#define NAME_TRIES	100
#define NAME_WAIT_MS	50

static const struct rdma_stat_desc counter_names[COUNTERS] = {
	[COUNT_RECEIVE_BAD_PKEY] = { .name = "receive_bad_pkey" },
	[COUNT_RECEIVE_BAD_QKEY] = { .name = "receive_bad_qkey" },
	[COUNT_RECEIVE_NO_BUFFER] = { .name = "receive_no_buffer" },
	[COUNT_RECEIVE_NO_QP] = { .name = "receive_no_qp" },
	[COUNT_SEND_BAD_PKEY] = { .name = "send_bad_pkey" },
	[COUNT_SEND_LOST] = { .name = "send_lost" },
	[COUNT_RETRIES] = { .name = "retries" },
	[COUNT_FIRMWARE_TIMEOUTS] = { .name = "firmware_timeouts" },
	[COUNT_FIRMWARE_LATE] = { .name = "firmware_late" },
};

static struct rdma_hw_stats *hca_alloc_stats(struct ib_device *d, u32 port)
{
	return rdma_alloc_hw_stats_struct(counter_names, COUNTERS, RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static int hca_get_stats(struct ib_device *d, struct rdma_hw_stats *stats, u32 port, int index)
{
	int i;

	if (!port)
		return -EINVAL;
	for (i = 0; i < COUNTERS; i++)
		stats->value[i] = atomic64_read(&to_hca(d)->ports[port].counters[i]);
	return COUNTERS;
}

static int hca_query_device(struct ib_device *d, struct ib_device_attr *a, struct ib_udata *u)
{
	const struct softhca_attach *at = &to_hca(d)->peer->attach;

	memset(a, 0, sizeof(*a));
	a->fw_ver = (u64)le16_to_cpu(at->firmware[0]) << 32 | (u32)le16_to_cpu(at->firmware[1]) << 16 |
		    le16_to_cpu(at->firmware[2]);
	a->sys_image_guid = at->system_guid;
	a->vendor_id = le32_to_cpu(at->vendor);
	a->vendor_part_id = le32_to_cpu(at->device);
	a->hw_ver = le32_to_cpu(at->revision);
	a->max_mr_size = SZ_1G;
	a->page_size_cap = PAGE_SIZE;
	a->max_qp = QP_MAX;
	a->max_qp_wr = QP_WR_MAX;
	a->max_send_sge = QP_SGE_MAX;
	a->max_recv_sge = QP_SGE_MAX;
	a->max_cq = QP_MAX;
	a->max_cqe = CQE_MAX;
	a->max_mr = MR_MAX;
	a->max_pd = QP_MAX;
	a->max_ah = QP_MAX;
	a->max_pkeys = to_hca(d)->pkey_count;
	a->local_ca_ack_delay = 15;
	return 0;
}

static int hca_port_immutable(struct ib_device *d, u32 port, struct ib_port_immutable *im)
{
	struct ib_port_attr a = {};
	int rc = hca_query_port(d, port, &a);

	if (rc)
		return rc;
	im->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	/*
	 * Linux 6.1 has no device of type SMI. It opens no port for MADs that has no CM; that there is no SA
	 * can be said.
	 */
	if (to_hca(d)->flags & SOFTHCA_PLANE)
		im->core_cap_flags = RDMA_CORE_CAP_PROT_IB | RDMA_CORE_CAP_IB_MAD | RDMA_CORE_CAP_IB_SMI |
				     RDMA_CORE_CAP_IB_CM;
	im->max_mad_size = IB_MGMT_MAD_SIZE;
	im->pkey_tbl_len = a.pkey_tbl_len;
	im->gid_tbl_len = a.gid_tbl_len;
	return 0;
}

static enum rdma_link_layer hca_link_layer(struct ib_device *d, u32 port) { return IB_LINK_LAYER_INFINIBAND; }

static void hca_firmware_string(struct ib_device *d, char *s)
{
	const struct softhca_attach *at = &to_hca(d)->peer->attach;

	snprintf(s, IB_FW_VERSION_NAME_MAX, "%u.%02u.%04u", le16_to_cpu(at->firmware[0]),
		 le16_to_cpu(at->firmware[1]), le16_to_cpu(at->firmware[2]));
}

static int hca_alloc_ucontext(struct ib_ucontext *c, struct ib_udata *u)
{
	return to_hca(c->device)->flags & SOFTHCA_PLANE ? -EOPNOTSUPP : 0;
}

static void hca_dealloc_ucontext(struct ib_ucontext *c) { }
/* Nothing of the adapter is mapped into programs; that this is here lets it be pulled while they have it open. */
static void hca_disassociate_ucontext(struct ib_ucontext *c) { }
static int hca_alloc_pd(struct ib_pd *pd, struct ib_udata *u) { return 0; }
static int hca_dealloc_pd(struct ib_pd *pd, struct ib_udata *u) { return 0; }

static int hca_create_ah(struct ib_ah *a, struct rdma_ah_init_attr *init, struct ib_udata *u)
{
	struct ah *ah = to_ah(a);

	ah->attr = *init->ah_attr;
	if (rdma_ah_get_ah_flags(&ah->attr) & IB_AH_GRH) {
		const struct ib_gid_attr *from = rdma_ah_read_grh(&ah->attr)->sgid_attr;

		if (from)
			ah->sgid = from->gid;
	}
	return 0;
}

static int hca_query_ah(struct ib_ah *a, struct rdma_ah_attr *attr)
{
	*attr = to_ah(a)->attr;
	return 0;
}

static int hca_destroy_ah(struct ib_ah *a, u32 flags) { return 0; }

static struct hca *of_device(struct device *d) { return rdma_device_to_drv_device(d, struct hca, ib); }

static ssize_t hca_type_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%.32s\n", of_device(d)->peer->attach.hca_type);
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t hw_rev_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%x\n", le32_to_cpu(of_device(d)->peer->attach.revision));
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t board_id_show(struct device *d, struct device_attribute *a, char *buf)
{
	return sysfs_emit(buf, "%.32s\n", of_device(d)->peer->attach.board);
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *hca_attributes[] = {
	&dev_attr_hca_type.attr, &dev_attr_hw_rev.attr, &dev_attr_board_id.attr, NULL,
};
static const struct attribute_group hca_group = { .attrs = hca_attributes };

static const struct ib_device_ops hca_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = 1,
	.device_group = &hca_group,
	.query_device = hca_query_device,
	.query_port = hca_query_port,
	.query_gid = hca_query_gid,
	.query_pkey = hca_query_pkey,
	.modify_port = hca_modify_port,
	.process_mad = hca_process_mad,
	.get_port_immutable = hca_port_immutable,
	.get_link_layer = hca_link_layer,
	.get_dev_fw_str = hca_firmware_string,
	.alloc_hw_port_stats = hca_alloc_stats,
	.get_hw_stats = hca_get_stats,
	.alloc_ucontext = hca_alloc_ucontext,
	.dealloc_ucontext = hca_dealloc_ucontext,
	.disassociate_ucontext = hca_disassociate_ucontext,
	.alloc_pd = hca_alloc_pd,
	.dealloc_pd = hca_dealloc_pd,
	.create_ah = hca_create_ah,
	.create_user_ah = hca_create_ah,
	.query_ah = hca_query_ah,
	.destroy_ah = hca_destroy_ah,
	.create_cq = hca_create_cq,
	.destroy_cq = hca_destroy_cq,
	.poll_cq = hca_poll_cq,
	.req_notify_cq = hca_req_notify_cq,
	.create_qp = hca_create_qp,
	.modify_qp = hca_modify_qp,
	.query_qp = hca_query_qp,
	.destroy_qp = hca_destroy_qp,
	.post_send = hca_post_send,
	.post_recv = hca_post_recv,
	.get_dma_mr = hca_get_dma_mr,
	.reg_user_mr = hca_reg_user_mr,
	.dereg_mr = hca_dereg_mr,
	INIT_RDMA_OBJ_SIZE(ib_pd, pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, qp, ib),
	INIT_RDMA_OBJ_SIZE(ib_ah, ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_ucontext, uctx, ib),
};

static struct hca *hca_new(struct peer *peer)
{
	const struct softhca_attach *at = &peer->attach;
	struct hca *hca = ib_alloc_device(hca, ib);
	u32 i;

	if (!hca)
		return NULL;
	hca->peer = peer;
	hca->flags = le32_to_cpu(at->flags);
	hca->pkey_count = le16_to_cpu(at->pkeys);
	hca->next_qp = 0x40;
	spin_lock_init(&hca->event_lock);
	spin_lock_init(&hca->qp_lock);
	spin_lock_init(&hca->mr_lock);
	xa_init_flags(&hca->qps, XA_FLAGS_ALLOC | XA_FLAGS_LOCK_IRQ);
	xa_init_flags(&hca->mrs, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);
	for (i = 0; i < ARRAY_SIZE(hca->ports); i++)
		spin_lock_init(&hca->ports[i].lock);
	hca->ib.phys_port_cnt = at->ports;
	hca->ib.node_type = RDMA_NODE_IB_CA;
	hca->ib.node_guid = at->node_guid;
	hca->ib.num_comp_vectors = 1;
	hca->ib.uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) | BIT_ULL(IB_USER_VERBS_CMD_POST_RECV) |
				   BIT_ULL(IB_USER_VERBS_CMD_POLL_CQ) | BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
	memcpy(hca->ib.node_desc, at->description, IB_DEVICE_NODE_DESC_MAX);
	hca->ib.node_desc[IB_DEVICE_NODE_DESC_MAX - 1] = 0;
	ib_set_device_ops(&hca->ib, &hca_ops);
	return hca;
}

void hca_free(struct hca *hca)
{
	xa_destroy(&hca->qps);
	xa_destroy(&hca->mrs);
	ib_dealloc_device(&hca->ib);
}

static int hca_register(struct hca *hca)
{
	struct peer *peer = hca->peer;
	u32 port;
	int rc = 0, tries;

	for (port = 1; port <= hca->ib.phys_port_cnt && !rc; port++)
		rc = firmware_pkeys(hca, port);
	for (tries = 0; !rc; tries++) {
		rc = ib_register_device(&hca->ib, peer->attach.name, NULL);
		if (rc != -ENFILE || tries >= NAME_TRIES || READ_ONCE(peer->gone))
			break;
		msleep(NAME_WAIT_MS);
		rc = 0;
	}
	return rc;
}

void hca_attach(struct work_struct *work)
{
	struct peer *peer = container_of(work, struct peer, attach_work);
	struct hca *hca = hca_new(peer);
	const struct cred *kernel = NULL;
	struct message *m;
	unsigned long flags;
	int rc = hca ? parent_lock(peer) : -ENOMEM;

	if (peer->caller)
		kernel = override_creds(peer->caller);
	if (hca) {
		if (peer->parent)
			hca->ib.dev.parent = &peer->parent->dev;
		spin_lock_irqsave(&peer->lock, flags);
		peer->hca = hca;	/* packets may come while ib_mad opens its queue pairs */
		spin_unlock_irqrestore(&peer->lock, flags);
		if (!rc)
			rc = hca_register(hca);
		if (!rc)
			event_registered(hca);
	}
	parent_unlock(peer, !rc);
	if (kernel)
		revert_creds(kernel);
	m = message_new(SOFTHCA_ATTACHED, 0, 0, GFP_KERNEL);
	if (m) {
		m->head.status = cpu_to_le32(-rc);
		peer_emit(peer, m);
	}
	peer_put(peer);
}

void hca_detach(struct work_struct *work)
{
	struct peer *peer = container_of(work, struct peer, detach_work);
	struct hca *hca;

	flush_work(&peer->attach_work);
	hca = peer->hca;
	if (hca && hca->registered) {
		event_unregister(hca);
		ib_unregister_device(&hca->ib);
	}
	parent_put(peer);
	peer_put(peer);
}
