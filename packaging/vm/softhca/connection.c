// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Reliable connections, with SEND as the only operation and one packet a message.
 *
 * The requester sends again what is not acknowledged in time, retry_cnt times, and
 * then ends with IB_WC_RETRY_EXC_ERR and the queue pair in error. Nothing else tells it
 * that its partition is gone: a responder drops packets of a wrong P_Key without a word
 * (IBTA volume 1, 9.6.1.1.3), and an entry of the requester's own table that has no
 * valid P_Key puts nothing on the wire.
 */
#include <linux/slab.h>

#include "hca.h"

#define PSN_MASK	0xffffff
#define FOREVER		7	/* rnr_retry */
/* Real adapters take up to four times the timeout that was asked for. */
#define PATIENCE	4

/* Before 0: a comes before b. */
static int psn_from(u32 a, u32 b) { return (int)((a - b) << 8) >> 8; }

static unsigned long ack_timeout(struct qp *qp)
{
	return usecs_to_jiffies(PATIENCE * 4096ull * (1ull << (qp->attr.timeout & 0x1f)) / 1000) + 1;
}

/* Hundredths of a millisecond by timer code (IBTA volume 1, table 45). */
static unsigned long ready_timeout(u32 code)
{
	static const u32 hundredths[] = {
		65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
		256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return usecs_to_jiffies(hundredths[code & 0x1f] * 10) + 1;
}

static struct message *connection_packet(struct qp *qp, u8 opcode, u32 psn, u32 payload)
{
	static const union ib_gid none;
	const union ib_gid *from = &none;
	struct message *m;

	if (rdma_ah_get_ah_flags(&qp->attr.ah_attr) & IB_AH_GRH && qp->attr.ah_attr.grh.sgid_attr)
		from = &qp->attr.ah_attr.grh.sgid_attr->gid;
	m = wire_packet(qp, &qp->attr.ah_attr, from, payload);
	if (!m)
		return NULL;
	m->head.opcode = opcode;
	m->head.dest_qp = cpu_to_le32(qp->attr.dest_qp_num);
	m->head.psn = cpu_to_le32(psn);
	return m;
}

/* Gives a packet the P_Key of this moment and sends it. What cannot be sent is lost, and missed by the far end. */
static void transmit(struct qp *qp, struct message *m)
{
	struct hca *hca = hca_of(qp);
	u16 pkey = wire_pkey(hca, qp->port, qp->attr.pkey_index);

	if (!m) {
		count(hca, qp->port, COUNT_SEND_LOST);
		return;
	}
	if (!pkey) {
		count(hca, qp->port, COUNT_SEND_BAD_PKEY);
		kfree(m);
		return;
	}
	m->head.pkey = cpu_to_le16(pkey);
	wire_send(hca, qp->port, m);
}

static void request_transmit(struct qp *qp, struct request *s)
{
	struct message *m = connection_packet(qp, SOFTHCA_RC_SEND, s->psn, s->length);

	if (m) {
		m->head.flags |= s->flags;
		m->head.immediate = s->immediate;
		memcpy(m->data, s->data, s->length);
	}
	transmit(qp, m);
}

static void timer_set(struct qp *qp, unsigned long delay)
{
	if (qp->state == IB_QPS_RTS)
		mod_delayed_work(softhca_wq, &qp->timer, delay);
}

/* The timer of the oldest request; a timeout of 0 means to wait for ever. */
static void timer_arm(struct qp *qp)
{
	if (!list_empty(&qp->requests) && qp->attr.timeout)
		timer_set(qp, ack_timeout(qp));
}

static void request_end(struct qp *qp, struct request *s, enum ib_wc_status status, struct batch *b)
{
	struct ib_wc wc = {
		.wr_id = s->wr_id, .status = status, .opcode = IB_WC_SEND, .qp = &qp->ib, .byte_len = s->length,
	};

	list_del(&s->list);
	qp->request_count--;
	if (s->signaled || status)
		cq_add(b, qp->ib.send_cq, &wc, false);
	kfree(s);
}

/* Ends the connection because of its oldest request. */
static void connection_break(struct qp *qp, enum ib_wc_status status, struct batch *b)
{
	struct request *s = list_first_entry_or_null(&qp->requests, struct request, list);

	if (s)
		request_end(qp, s, status, b);
	qp_fail(qp, b);
}

/* Breaks the connection when a request that cannot leave is the oldest; reports whether it did. */
static bool breaks(struct qp *qp, struct batch *b)
{
	struct request *s = list_first_entry_or_null(&qp->requests, struct request, list);

	if (!s || !s->failed)
		return false;
	connection_break(qp, s->failed, b);
	return true;
}

static void send_again(struct qp *qp)
{
	struct request *s;

	list_for_each_entry(s, &qp->requests, list) {
		if (s->failed)
			break;
		count(hca_of(qp), qp->port, COUNT_RETRIES);
		request_transmit(qp, s);
	}
	timer_arm(qp);
}

int connection_send(struct qp *qp, const struct ib_send_wr *wr, struct batch *b)
{
	u64 length = mr_length(wr->sg_list, wr->num_sge);
	enum ib_wc_status failed = IB_WC_SUCCESS;
	bool blocked = qp->waits_ready;
	struct request *s;

	if (qp->request_count >= qp->cap.max_send_wr)
		return -ENOMEM;
	if (length > ib_mtu_enum_to_int(qp->attr.path_mtu)) {
		failed = IB_WC_LOC_LEN_ERR;
		length = 0;
	}
	s = kzalloc(struct_size(s, data, length), GFP_ATOMIC);
	if (!s)
		return -ENOMEM;
	s->wr_id = wr->wr_id;
	s->signaled = qp->signal_all || wr->send_flags & IB_SEND_SIGNALED;
	if (wr->opcode == IB_WR_SEND_WITH_IMM) {
		s->flags |= SOFTHCA_IMMEDIATE;
		s->immediate = wr->ex.imm_data;
	}
	if (wr->send_flags & IB_SEND_SOLICITED)
		s->flags |= SOFTHCA_SOLICITED;
	if (!failed && mr_gather(qp, wr->sg_list, wr->num_sge, s->data, length, &s->length))
		failed = IB_WC_LOC_PROT_ERR;
	s->failed = failed;
	if (!list_empty(&qp->requests))
		blocked |= list_last_entry(&qp->requests, struct request, list)->failed;
	s->psn = qp->send_psn;
	qp->send_psn = (qp->send_psn + 1) & PSN_MASK;
	list_add_tail(&s->list, &qp->requests);
	if (++qp->request_count == 1) {
		qp->tries = qp->attr.retry_cnt;
		qp->ready_tries = qp->attr.rnr_retry;
	}
	if (breaks(qp, b) || failed || blocked)
		return 0;
	request_transmit(qp, s);
	if (qp->request_count == 1)
		timer_arm(qp);
	return 0;
}

/* All up to psn has arrived. */
static void acknowledged(struct qp *qp, u32 psn, struct batch *b)
{
	struct request *s, *next;
	bool progress = false;

	list_for_each_entry_safe(s, next, &qp->requests, list) {
		if (s->failed || psn_from(psn, s->psn) < 0)
			break;
		request_end(qp, s, IB_WC_SUCCESS, b);
		progress = true;
	}
	if (!progress)
		return;
	qp->tries = qp->attr.retry_cnt;
	qp->ready_tries = qp->attr.rnr_retry;
	qp->waits_ready = false;
	if (!breaks(qp, b))
		timer_arm(qp);
}

static void take_ack(struct qp *qp, const struct softhca_head *head, struct batch *b)
{
	u32 psn = le32_to_cpu(head->psn) & PSN_MASK;
	u32 kind = le32_to_cpu(head->value);
	struct request *s;

	if (qp->state != IB_QPS_RTS)
		return;
	acknowledged(qp, kind == SOFTHCA_ACK ? psn : (psn - 1) & PSN_MASK, b);
	s = list_first_entry_or_null(&qp->requests, struct request, list);
	if (kind == SOFTHCA_ACK || !s || s->psn != psn)
		return;		/* also a NAK that is older than what was done since */
	switch (kind) {
	case SOFTHCA_NAK_SEQUENCE:
		if (!qp->tries)
			connection_break(qp, IB_WC_RETRY_EXC_ERR, b);
		else {
			qp->tries--;
			send_again(qp);
		}
		break;
	case SOFTHCA_NAK_NOT_READY:
		if (qp->waits_ready)
			break;
		if (!qp->ready_tries) {
			connection_break(qp, IB_WC_RNR_RETRY_EXC_ERR, b);
			break;
		}
		if (qp->attr.rnr_retry != FOREVER)
			qp->ready_tries--;
		qp->waits_ready = true;
		timer_set(qp, ready_timeout(le32_to_cpu(head->value2)));
		break;
	case SOFTHCA_NAK_INVALID:
		connection_break(qp, IB_WC_REM_INV_REQ_ERR, b);
		break;
	default:
		connection_break(qp, IB_WC_REM_OP_ERR, b);
	}
}

static void answer(struct qp *qp, u32 psn, enum softhca_nak kind)
{
	struct message *m = connection_packet(qp, SOFTHCA_RC_ACK, psn, 0);

	if (m) {
		m->head.value = cpu_to_le32(kind);
		m->head.value2 = cpu_to_le32(qp->attr.min_rnr_timer);
	}
	transmit(qp, m);
}

static void take_request(struct qp *qp, const struct softhca_head *head, const u8 *data, u32 size, struct batch *b)
{
	int ahead = psn_from(le32_to_cpu(head->psn), qp->expected_psn);
	struct ib_wc wc = {};
	struct receive *r;

	if (ahead < 0) {		/* the acknowledgment was lost */
		answer(qp, (qp->expected_psn - 1) & PSN_MASK, SOFTHCA_ACK);
		return;
	}
	if (ahead > 0) {
		if (!qp->told_sequence)
			answer(qp, qp->expected_psn, SOFTHCA_NAK_SEQUENCE);
		qp->told_sequence = true;
		return;
	}
	r = list_first_entry_or_null(&qp->receives, struct receive, list);
	if (!r) {
		answer(qp, qp->expected_psn, SOFTHCA_NAK_NOT_READY);
		return;
	}
	qp->told_sequence = false;
	list_del(&r->list);
	qp->receive_count--;
	if (receive_fill(qp, r, head, data, size, &wc)) {
		answer(qp, qp->expected_psn,
		       wc.status == IB_WC_LOC_LEN_ERR ? SOFTHCA_NAK_INVALID : SOFTHCA_NAK_OPERATION);
		cq_add(b, qp->ib.recv_cq, &wc, false);
		qp_fail(qp, b);
	} else {
		answer(qp, qp->expected_psn, SOFTHCA_ACK);
		qp->expected_psn = (qp->expected_psn + 1) & PSN_MASK;
		cq_add(b, qp->ib.recv_cq, &wc, head->flags & SOFTHCA_SOLICITED);
	}
	kfree(r);
}

void connection_receive(struct qp *qp, const struct softhca_head *head, const u8 *data, u32 size, struct batch *b)
{
	struct hca *hca = hca_of(qp);

	if (!wire_pkey_admits(hca, qp->port, qp->attr.pkey_index, le16_to_cpu(head->pkey))) {
		count(hca, qp->port, COUNT_RECEIVE_BAD_PKEY);
		return;
	}
	if (le32_to_cpu(head->source_qp) != qp->attr.dest_qp_num) {
		count(hca, qp->port, COUNT_RECEIVE_NO_QP);
		return;
	}
	if (head->opcode == SOFTHCA_RC_ACK)
		take_ack(qp, head, b);
	else if (head->opcode == SOFTHCA_RC_SEND)
		take_request(qp, head, data, size, b);
	else
		count(hca, qp->port, COUNT_RECEIVE_NO_QP);
}

void connection_timer(struct work_struct *work)
{
	struct qp *qp = container_of(to_delayed_work(work), struct qp, timer);
	struct batch b = {};
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	if (qp->state == IB_QPS_RTS && !list_empty(&qp->requests)) {
		if (qp->waits_ready) {
			qp->waits_ready = false;
			send_again(qp);
		} else if (!qp->tries) {
			connection_break(qp, IB_WC_RETRY_EXC_ERR, &b);
		} else {
			qp->tries--;
			send_again(qp);
		}
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	cq_tell(&b);
}
