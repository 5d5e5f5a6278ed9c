/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Inside softhca. A peer is one open of /dev/softhca; an hca is the InfiniBand
 * device that it attached.
 *
 * Locks, outer before inner: qp->lock, then one of hca->mr_lock, cq->lock,
 * peer->lock and port->lock, which are never held together. hca->qp_lock is held for
 * nothing but finding a queue pair. All are taken with interrupts off, since
 * ib_mad posts that way. Nothing sleeps under them. Completion handlers run
 * without any.
 */
#ifndef HCA_H
#define HCA_H

#include <linux/completion.h>
#include <linux/cred.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

#include "softhca.h"

#define QP_MAX		1024
#define QP_WR_MAX	1024
#define QP_SGE_MAX	4
#define CQE_MAX		16384
#define MR_MAX		4096
/* Messages that wait for the peer; more are lost, as on a full wire. */
#define QUEUE_MAX	4096

extern unsigned int firmware_timeout_ms;
extern struct workqueue_struct *softhca_wq;

/* A message on its way to the peer. */
struct message {
	struct list_head list;
	u32 payload;			/* bytes */
	struct softhca_head head;
	u8 data[];
};

struct hca;

struct peer {
	struct kref ref;
	spinlock_t lock;		/* of all below up to wait */
	struct list_head out;
	unsigned int queued;
	struct list_head requests;	/* that wait for the firmware */
	u32 token;
	bool gone;			/* the adapter is pulled */
	bool attached;			/* it was plugged in, whatever became of it */
	struct hca *hca;		/* set before it is registered; freed with the last reference to the peer */
	wait_queue_head_t wait;		/* for messages, and for being gone */
	struct softhca_attach attach;
	struct pci_dev *parent;		/* the function that the device is on; NULL: none */
	struct list_head child;		/* of the devices that have one */
	const struct cred *caller;	/* in whose name the device is registered; NULL: the kernel's */
	struct work_struct attach_work;
	struct work_struct detach_work;
};

enum counter {
	COUNT_RECEIVE_BAD_PKEY,
	COUNT_RECEIVE_BAD_QKEY,
	COUNT_RECEIVE_NO_BUFFER,
	COUNT_RECEIVE_NO_QP,
	COUNT_SEND_BAD_PKEY,
	COUNT_SEND_LOST,
	COUNT_RETRIES,
	COUNT_FIRMWARE_TIMEOUTS,
	COUNT_FIRMWARE_LATE,
	COUNTERS,
};

struct port {
	spinlock_t lock;
	u16 pkeys[SOFTHCA_PKEYS_MAX];	/* the adapter's own table, which packets are held to */
	bool told;			/* the peer has told it: what was read before is older */
	unsigned long missed;		/* events from before the device was registered, by bit; guarded by event_lock */
	struct qp *special[2];		/* guarded by hca->qp_lock */
	atomic64_t counters[COUNTERS];
};

struct hca {
	struct ib_device ib;
	struct peer *peer;
	u32 flags;
	u16 pkey_count;
	bool registered;		/* events may be dispatched; guarded by event_lock */
	bool held;			/* the hold of a half registered device is over or begun */
	spinlock_t event_lock;
	spinlock_t qp_lock;
	struct xarray qps;
	u32 next_qp;
	spinlock_t mr_lock;
	struct xarray mrs;
	u32 next_mr;
	struct port ports[SOFTHCA_PORTS_MAX + 1];	/* [0] is unused */
};

struct cq {
	struct ib_cq ib;
	spinlock_t lock;
	struct ib_wc *ring;
	u32 size, first, count;
	bool armed, solicited;		/* armed for solicited completions only */
	bool overflowed;
};

struct mr {
	struct ib_mr ib;
	struct ib_umem *umem;		/* NULL: all kernel memory */
	u64 start, length;
	bool writable;
};

struct receive {
	struct list_head list;
	u64 wr_id;
	u32 sges;
	struct ib_sge sge[QP_SGE_MAX];
};

/* A send of a reliable connection that is not acknowledged. */
struct request {
	struct list_head list;
	u64 wr_id;
	u32 psn;
	u32 flags;			/* of the message */
	__be32 immediate;
	bool signaled;
	enum ib_wc_status failed;	/* it never leaves: it fails when it is the first */
	u32 length;
	u8 data[];
};

struct qp {
	struct ib_qp ib;
	struct kref ref;
	struct completion unused;
	spinlock_t lock;		/* of all below */
	enum ib_qp_state state;
	struct ib_qp_attr attr;
	struct ib_qp_cap cap;
	bool signal_all;
	u32 port;
	struct list_head receives;
	u32 receive_count;
	/* Of a reliable connection. */
	struct list_head requests;
	u32 request_count;
	u32 send_psn;			/* of the next request */
	u32 expected_psn;		/* of the next packet from the far end */
	u32 tries, ready_tries;		/* that are left */
	bool waits_ready;		/* the far end has no receive yet */
	bool told_sequence;		/* a NAK for the gap was sent */
	struct delayed_work timer;
};

struct ah {
	struct ib_ah ib;
	struct rdma_ah_attr attr;
	union ib_gid sgid;
};

struct pd { struct ib_pd ib; };
struct uctx { struct ib_ucontext ib; };

static inline struct hca *to_hca(struct ib_device *d) { return container_of(d, struct hca, ib); }
static inline struct cq *to_cq(struct ib_cq *c) { return container_of(c, struct cq, ib); }
static inline struct qp *to_qp(struct ib_qp *q) { return container_of(q, struct qp, ib); }
static inline struct ah *to_ah(struct ib_ah *a) { return container_of(a, struct ah, ib); }
static inline struct mr *to_mr(struct ib_mr *m) { return container_of(m, struct mr, ib); }
static inline struct hca *hca_of(struct qp *qp) { return to_hca(qp->ib.device); }

static inline void count(struct hca *hca, u32 port, enum counter c)
{
	atomic64_inc(&hca->ports[port].counters[c]);
}

/* peer.c: the device file */
int peer_init(void);
void peer_exit(void);
struct message *message_new(u8 type, u32 port, u32 payload, gfp_t gfp);
int peer_emit(struct peer *peer, struct message *m);	/* takes the message in any case */
void peer_get(struct peer *peer);
void peer_put(struct peer *peer);
void peer_pull(struct peer *peer);

int parent_init(void);
void parent_exit(void);
int parent_lock(struct peer *peer);
void parent_unlock(struct peer *peer, bool registered);
void parent_put(struct peer *peer);

/* firmware.c: what the adapter's firmware is asked */
int firmware_reply(struct peer *peer, const struct softhca_head *head, const u8 *data, u32 size);
void firmware_cancel(struct peer *peer);		/* with peer->lock held */
int hca_query_port(struct ib_device *d, u32 port, struct ib_port_attr *a);
int firmware_pkeys(struct hca *hca, u32 port);
int hca_query_gid(struct ib_device *d, u32 port, int index, union ib_gid *gid);
int hca_query_pkey(struct ib_device *d, u32 port, u16 index, u16 *pkey);
int hca_modify_port(struct ib_device *d, u32 port, int mask, struct ib_port_modify *m);
int hca_process_mad(struct ib_device *d, int flags, u32 port, const struct ib_wc *wc, const struct ib_grh *grh,
		    const struct ib_mad *in, struct ib_mad *out, size_t *out_size, u16 *pkey_index);

/* events.c */
int event_take(struct hca *hca, u32 port, u32 event);
int event_pkeys(struct hca *hca, u32 port, const u8 *data, u32 size);
void event_registered(struct hca *hca);
void event_unregister(struct hca *hca);

/* device.c: the InfiniBand device */
void hca_attach(struct work_struct *work);
void hca_detach(struct work_struct *work);
void hca_free(struct hca *hca);

/* cq.c */
int hca_create_cq(struct ib_cq *c, const struct ib_cq_init_attr *a, struct ib_udata *u);
int hca_destroy_cq(struct ib_cq *c, struct ib_udata *u);
int hca_poll_cq(struct ib_cq *c, int n, struct ib_wc *wc);
int hca_req_notify_cq(struct ib_cq *c, enum ib_cq_notify_flags flags);
void cq_purge(struct cq *cq, struct ib_qp *qp);
/*
 * Completions are put into a batch while the queue pair's lock is held, and handed to
 * the handlers after it.
 */
struct batch { struct ib_cq *notify[2]; struct ib_cq *broken[2]; };
void cq_add(struct batch *b, struct ib_cq *c, const struct ib_wc *wc, bool solicited);
void cq_tell(struct batch *b);

/* mr.c */
struct ib_mr *hca_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *hca_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt, int access, struct ib_udata *u);
int hca_dereg_mr(struct ib_mr *m, struct ib_udata *u);
int mr_gather(struct qp *qp, const struct ib_sge *sge, int n, u8 *to, u32 room, u32 *length);
int mr_scatter(struct qp *qp, const struct receive *r, u32 offset, const u8 *from, u32 length);
u64 mr_length(const struct ib_sge *sge, int n);

/* qp.c */
int hca_create_qp(struct ib_qp *q, struct ib_qp_init_attr *a, struct ib_udata *u);
int hca_modify_qp(struct ib_qp *q, struct ib_qp_attr *a, int mask, struct ib_udata *u);
int hca_query_qp(struct ib_qp *q, struct ib_qp_attr *a, int mask, struct ib_qp_init_attr *ia);
int hca_destroy_qp(struct ib_qp *q, struct ib_udata *u);
int hca_post_send(struct ib_qp *q, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
int hca_post_recv(struct ib_qp *q, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
struct qp *qp_find(struct hca *hca, u32 port, u32 number);
void qp_put(struct qp *qp);
void qp_fail(struct qp *qp, struct batch *b);		/* with qp->lock held: into the error state */

/* wire.c: packets of both directions */
int wire_receive(struct hca *hca, const struct softhca_head *head, const u8 *data, u32 size);
u16 wire_pkey(struct hca *hca, u32 port, u16 index);
int wire_pkey_index(struct hca *hca, u32 port, u16 pkey);	/* -ENOENT: none matches */
u32 wire_qkey(struct qp *qp, u32 asked);
bool wire_pkey_admits(struct hca *hca, u32 port, u16 index, u16 pkey);
struct message *wire_packet(struct qp *qp, const struct rdma_ah_attr *to, const union ib_gid *sgid, u32 payload);
int wire_send(struct hca *hca, u32 port, struct message *m);
int receive_fill(struct qp *qp, struct receive *r, const struct softhca_head *head, const u8 *data, u32 size,
		 struct ib_wc *wc);

/* mad.c, datagram.c, connection.c: all with qp->lock held */
int mad_send(struct qp *qp, const struct ib_send_wr *wr, struct batch *b);
void mad_receive(struct qp *qp, const struct softhca_head *head, const u8 *data, u32 size, struct batch *b);
int datagram_send(struct qp *qp, const struct ib_send_wr *wr, struct batch *b);
void datagram_receive(struct qp *qp, const struct softhca_head *head, const u8 *data, u32 size, struct batch *b);
int connection_send(struct qp *qp, const struct ib_send_wr *wr, struct batch *b);
void connection_receive(struct qp *qp, const struct softhca_head *head, const u8 *data, u32 size, struct batch *b);
void connection_timer(struct work_struct *work);

#endif
