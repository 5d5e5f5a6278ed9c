// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The device file: one open is one function, and its end takes it away. */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "function.h"

struct message *message_new(u32 type, u32 payload)
{
	struct message *m;

	if (payload > SOFTPCI_RPC_MAX)
		return NULL;
	m = kvzalloc(struct_size(m, data, payload), GFP_KERNEL);
	if (!m)
		return NULL;
	m->payload = payload;
	m->head.size = cpu_to_le32(SOFTPCI_HEAD_SIZE + payload);
	m->head.type = cpu_to_le32(type);
	return m;
}

int function_emit(struct function *fn, struct message *m)
{
	int rc = 0;

	spin_lock(&fn->lock);
	if (fn->gone) {
		rc = -ENODEV;
	} else if (fn->queued >= QUEUE_MAX) {
		rc = -ENOBUFS;
	} else {
		list_add_tail(&m->list, &fn->out);
		fn->queued++;
	}
	spin_unlock(&fn->lock);
	if (rc)
		kvfree(m);
	else
		wake_up_interruptible(&fn->wait);
	return rc;
}

static void function_free(struct kref *ref)
{
	struct function *fn = container_of(ref, struct function, ref);
	struct message *m, *next;

	irq_work_sync(&fn->wake);
	list_for_each_entry_safe(m, next, &fn->out, list)
		kvfree(m);
	kvfree(fn);
}

void function_get(struct function *fn) { kref_get(&fn->ref); }
void function_put(struct function *fn) { kref_put(&fn->ref, function_free); }

static void function_wake(struct irq_work *work)
{
	wake_up_interruptible(&container_of(work, struct function, wake)->wait);
}

static int softpci_open(struct inode *inode, struct file *file)
{
	struct function *fn = kvzalloc(sizeof(*fn), GFP_KERNEL);

	if (!fn)
		return -ENOMEM;
	kref_init(&fn->ref);
	raw_spin_lock_init(&fn->space);
	spin_lock_init(&fn->lock);
	mutex_init(&fn->setup);
	INIT_LIST_HEAD(&fn->out);
	INIT_LIST_HEAD(&fn->calls);
	init_waitqueue_head(&fn->wait);
	fn->wake = IRQ_WORK_INIT(function_wake);
	file->private_data = fn;
	return nonseekable_open(inode, file);
}

static int softpci_release(struct inode *inode, struct file *file)
{
	struct function *fn = file->private_data;

	spin_lock(&fn->lock);
	fn->gone = true;
	spin_unlock(&fn->lock);
	node_cancel(fn);
	bus_remove(fn);
	function_put(fn);
	return 0;
}

static struct message *function_next(struct function *fn)
{
	struct message *m;

	spin_lock(&fn->lock);
	m = list_first_entry_or_null(&fn->out, struct message, list);
	if (m) {
		list_del(&m->list);
		fn->queued--;
	}
	spin_unlock(&fn->lock);
	return m ? m : space_command(fn);
}

static bool function_readable(struct function *fn)
{
	bool queued;

	spin_lock(&fn->lock);
	queued = !list_empty(&fn->out);
	spin_unlock(&fn->lock);
	return queued || space_wants(fn);
}

static ssize_t softpci_read(struct file *file, char __user *buf, size_t n, loff_t *pos)
{
	struct function *fn = file->private_data;
	struct message *m;
	int rc = 0;

	if (n < SOFTPCI_MESSAGE_MAX)
		return -EMSGSIZE;
	while (!(m = function_next(fn))) {
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(fn->wait, function_readable(fn)))
			return -ERESTARTSYS;
	}
	n = SOFTPCI_HEAD_SIZE + m->payload;
	if (copy_to_user(buf, &m->head, SOFTPCI_HEAD_SIZE) ||
	    copy_to_user(buf + SOFTPCI_HEAD_SIZE, m->data, m->payload))
		rc = -EFAULT;
	kvfree(m);
	return rc ? rc : n;
}

static bool attach_valid(const struct softpci_attach *a)
{
	u32 gateway = le32_to_cpu(a->gateway), vpd = le32_to_cpu(a->vpd);
	u32 mailbox = le32_to_cpu(a->mailbox_size);

	return le32_to_cpu(a->version) == SOFTPCI_VERSION && !(le32_to_cpu(a->flags) & ~SOFTPCI_FWCTL) &&
	       gateway >= 0x40 && gateway <= SOFTPCI_CONFIG_SIZE - 0x18 && !(gateway & 3) &&
	       vpd <= SOFTPCI_CONFIG_SIZE - 8 && !(vpd & 3) && le32_to_cpu(a->vpd_size) <= SOFTPCI_VPD_MAX &&
	       mailbox <= SOFTPCI_MAILBOX_MAX && !(mailbox & 3) && le32_to_cpu(a->words) <= SOFTPCI_WORDS_MAX;
}

static int function_attach(struct function *fn, const u8 *data, u32 size)
{
	struct message *m;
	int rc = -EINVAL;

	if (size != sizeof(fn->attach))
		return -EINVAL;
	mutex_lock(&fn->setup);
	if (fn->bus) {
		rc = -EBUSY;
	} else {
		memcpy(&fn->attach, data, size);
		if (attach_valid(&fn->attach)) {
			space_init(fn);
			rc = bus_add(fn);
		}
	}
	mutex_unlock(&fn->setup);
	if (rc)
		return rc;
	m = message_new(SOFTPCI_ATTACHED, 16);
	if (!m)
		return -ENOMEM;
	snprintf(m->data, 16, "%04x:00:00.0", fn->sysdata.domain);
	return function_emit(fn, m);
}

static int function_take(struct function *fn, const struct softpci_head *head, const u8 *data, u32 size)
{
	switch (le32_to_cpu(head->type)) {
	case SOFTPCI_ATTACH:
		return function_attach(fn, data, size);
	case SOFTPCI_DONE:
		return space_done(fn, head, data, size);
	case SOFTPCI_ANSWER:
		return node_answer(fn, head, data, size);
	default:
		return -EINVAL;
	}
}

static ssize_t softpci_write(struct file *file, const char __user *buf, size_t n, loff_t *pos)
{
	struct softpci_head *head;
	int rc = -EINVAL;

	if (n < SOFTPCI_HEAD_SIZE || n > SOFTPCI_MESSAGE_MAX)
		return -EMSGSIZE;
	head = vmemdup_user(buf, n);
	if (IS_ERR(head))
		return PTR_ERR(head);
	if (le32_to_cpu(head->size) == n)
		rc = function_take(file->private_data, head, (u8 *)(head + 1), n - SOFTPCI_HEAD_SIZE);
	kvfree(head);
	return rc ? rc : n;
}

static __poll_t softpci_poll(struct file *file, poll_table *table)
{
	struct function *fn = file->private_data;

	poll_wait(file, &fn->wait, table);
	return EPOLLOUT | EPOLLWRNORM | (function_readable(fn) ? EPOLLIN | EPOLLRDNORM : 0);
}

static const struct file_operations softpci_file = {
	.owner = THIS_MODULE,
	.open = softpci_open,
	.release = softpci_release,
	.read = softpci_read,
	.write = softpci_write,
	.poll = softpci_poll,
	.llseek = no_llseek,
};

static struct miscdevice softpci_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "softpci",
	.fops = &softpci_file,
	.mode = 0600,
};

int file_init(void) { return misc_register(&softpci_misc); }
void file_exit(void) { misc_deregister(&softpci_misc); }
