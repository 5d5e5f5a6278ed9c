// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The device file: one open is one adapter, and its end pulls it. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "hca.h"

struct message *message_new(u8 type, u32 port, u32 payload, gfp_t gfp)
{
	struct message *m;

	if (payload > SOFTHCA_PAYLOAD_MAX)
		return NULL;
	m = kzalloc(struct_size(m, data, payload), gfp);
	if (!m)
		return NULL;
	m->payload = payload;
	m->head.size = cpu_to_le32(SOFTHCA_HEAD_SIZE + payload);
	m->head.type = type;
	m->head.port = port;
	return m;
}

int peer_emit(struct peer *peer, struct message *m)
{
	unsigned long flags;
	int rc = 0;

	spin_lock_irqsave(&peer->lock, flags);
	if (peer->gone) {
		rc = -ENODEV;
	} else if (peer->queued >= QUEUE_MAX) {
		rc = -ENOBUFS;
	} else {
		list_add_tail(&m->list, &peer->out);
		peer->queued++;
	}
	spin_unlock_irqrestore(&peer->lock, flags);
	if (rc)
		kfree(m);
	else
		wake_up_interruptible(&peer->wait);
	return rc;
}

static void peer_free(struct kref *ref)
{
	struct peer *peer = container_of(ref, struct peer, ref);
	struct message *m, *next;

	if (peer->hca)
		hca_free(peer->hca);
	list_for_each_entry_safe(m, next, &peer->out, list)
		kfree(m);
	put_cred(peer->caller);
	kfree(peer);
}

void peer_get(struct peer *peer) { kref_get(&peer->ref); }
void peer_put(struct peer *peer) { kref_put(&peer->ref, peer_free); }

/* Pulls the adapter: nothing waits for the peer any more, and the device goes away. */
void peer_pull(struct peer *peer)
{
	unsigned long flags;
	bool first;

	spin_lock_irqsave(&peer->lock, flags);
	first = !peer->gone;
	peer->gone = true;
	firmware_cancel(peer);
	if (first) {
		peer_get(peer);
		queue_work(softhca_wq, &peer->detach_work);
	}
	spin_unlock_irqrestore(&peer->lock, flags);
	wake_up_interruptible(&peer->wait);
}

static int softhca_open(struct inode *inode, struct file *file)
{
	struct peer *peer = kzalloc(sizeof(*peer), GFP_KERNEL);

	if (!peer)
		return -ENOMEM;
	kref_init(&peer->ref);
	spin_lock_init(&peer->lock);
	INIT_LIST_HEAD(&peer->out);
	INIT_LIST_HEAD(&peer->requests);
	INIT_LIST_HEAD(&peer->child);
	init_waitqueue_head(&peer->wait);
	INIT_WORK(&peer->attach_work, hca_attach);
	INIT_WORK(&peer->detach_work, hca_detach);
	file->private_data = peer;
	return nonseekable_open(inode, file);
}

static int softhca_release(struct inode *inode, struct file *file)
{
	struct peer *peer = file->private_data;

	peer_pull(peer);
	peer_put(peer);
	return 0;
}

/* Takes the first message, if it fits into room bytes. */
static struct message *peer_next(struct peer *peer, size_t room, int *rc)
{
	struct message *m;
	unsigned long flags;

	*rc = 0;
	spin_lock_irqsave(&peer->lock, flags);
	m = list_first_entry_or_null(&peer->out, struct message, list);
	if (!m) {
		*rc = peer->gone ? -ENODEV : -EAGAIN;
	} else if (room < SOFTHCA_HEAD_SIZE + m->payload) {
		m = NULL;
		*rc = -EMSGSIZE;
	} else {
		list_del(&m->list);
		peer->queued--;
	}
	spin_unlock_irqrestore(&peer->lock, flags);
	return m;
}

static bool peer_readable(struct peer *peer)
{
	unsigned long flags;
	bool readable;

	spin_lock_irqsave(&peer->lock, flags);
	readable = peer->gone || !list_empty(&peer->out);
	spin_unlock_irqrestore(&peer->lock, flags);
	return readable;
}

static ssize_t softhca_read(struct file *file, char __user *buf, size_t n, loff_t *pos)
{
	struct peer *peer = file->private_data;
	struct message *m;
	int rc;

	while (!(m = peer_next(peer, n, &rc))) {
		if (rc != -EAGAIN || (file->f_flags & O_NONBLOCK))
			return rc;
		if (wait_event_interruptible(peer->wait, peer_readable(peer)))
			return -ERESTARTSYS;
	}
	n = SOFTHCA_HEAD_SIZE + m->payload;
	if (copy_to_user(buf, &m->head, SOFTHCA_HEAD_SIZE) ||
	    copy_to_user(buf + SOFTHCA_HEAD_SIZE, m->data, m->payload))
		rc = -EFAULT;
	kfree(m);
	return rc ? rc : n;
}

static int peer_attach(struct peer *peer, const u8 *data, u32 size)
{
	struct softhca_attach *a = &peer->attach;
	unsigned long flags;
	int rc = 0;

	if (size != sizeof(*a))
		return -EINVAL;
	spin_lock_irqsave(&peer->lock, flags);
	if (peer->gone) {
		rc = -ENODEV;
	} else if (peer->attached) {
		rc = -EBUSY;
	} else {
		memcpy(a, data, sizeof(*a));
		if (le32_to_cpu(a->version) != SOFTHCA_VERSION)
			rc = -EPROTO;
		else if (a->ports < 1 || a->ports > SOFTHCA_PORTS_MAX ||
			 le16_to_cpu(a->pkeys) < 1 || le16_to_cpu(a->pkeys) > SOFTHCA_PKEYS_MAX ||
			 (le32_to_cpu(a->flags) & ~(SOFTHCA_FUNCTION | SOFTHCA_PLANE | SOFTHCA_CALLER)) ||
			 strnlen(a->name, sizeof(a->name)) == sizeof(a->name) || !a->name[0] ||
			 strnlen(a->pci, sizeof(a->pci)) == sizeof(a->pci) ||
			 strchr(a->name, '/'))
			rc = -EINVAL;
	}
	if (!rc) {
		peer->attached = true;
		if (le32_to_cpu(a->flags) & SOFTHCA_CALLER)
			peer->caller = get_current_cred();
		kref_get(&peer->ref);
		queue_work(softhca_wq, &peer->attach_work);
	}
	spin_unlock_irqrestore(&peer->lock, flags);
	return rc;
}

static int peer_take(struct peer *peer, const struct softhca_head *head, const u8 *data, u32 size)
{
	struct hca *hca;
	unsigned long flags;
	u32 port = head->port;
	bool gone;

	switch (head->type) {
	case SOFTHCA_ATTACH:
		return peer_attach(peer, data, size);
	case SOFTHCA_DETACH:
		peer_pull(peer);
		return 0;
	case SOFTHCA_REPLY:
		return firmware_reply(peer, head, data, size);
	}
	/* The device is freed with the peer, and the open file holds that. */
	spin_lock_irqsave(&peer->lock, flags);
	hca = peer->hca;
	gone = peer->gone;
	spin_unlock_irqrestore(&peer->lock, flags);
	if (!hca || gone)
		return -ENODEV;
	if (port < 1 || port > hca->ib.phys_port_cnt)
		return -EINVAL;
	switch (head->type) {
	case SOFTHCA_RECEIVE:
		return wire_receive(hca, head, data, size);
	case SOFTHCA_EVENT:
		return event_take(hca, port, le32_to_cpu(head->value));
	case SOFTHCA_PKEYS:
		return event_pkeys(hca, port, data, size);
	default:
		return -EINVAL;
	}
}

static ssize_t softhca_write(struct file *file, const char __user *buf, size_t n, loff_t *pos)
{
	struct softhca_head *head;
	int rc;

	if (n < SOFTHCA_HEAD_SIZE || n > SOFTHCA_MESSAGE_MAX)
		return -EMSGSIZE;
	head = memdup_user(buf, n);
	if (IS_ERR(head))
		return PTR_ERR(head);
	rc = -EINVAL;
	if (le32_to_cpu(head->size) == n)
		rc = peer_take(file->private_data, head, (u8 *)(head + 1), n - SOFTHCA_HEAD_SIZE);
	kfree(head);
	return rc ? rc : n;
}

static __poll_t softhca_poll(struct file *file, poll_table *table)
{
	struct peer *peer = file->private_data;
	__poll_t mask = EPOLLOUT | EPOLLWRNORM;
	unsigned long flags;

	poll_wait(file, &peer->wait, table);
	spin_lock_irqsave(&peer->lock, flags);
	if (!list_empty(&peer->out))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (peer->gone)
		mask |= EPOLLHUP | EPOLLIN;
	spin_unlock_irqrestore(&peer->lock, flags);
	return mask;
}

static const struct file_operations softhca_file = {
	.owner = THIS_MODULE,
	.open = softhca_open,
	.release = softhca_release,
	.read = softhca_read,
	.write = softhca_write,
	.poll = softhca_poll,
	.llseek = no_llseek,
};

static struct miscdevice softhca_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "softhca",
	.fops = &softhca_file,
	.mode = 0600,
};

int peer_init(void) { return misc_register(&softhca_misc); }
void peer_exit(void) { misc_deregister(&softhca_misc); }
