// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The device node of fwctl, for kernels that are built without it: the class, the
 * place below the PCI function, and the ioctls with their errors are those that
 * Linux 6.15 and later have for an mlx5 adapter. The peer checks opcode and scope, as
 * the mlx5 driver does, and does the command.
 */
#include <linux/capability.h>
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "function.h"

#define NODES_MAX	64

static unsigned int rpc_timeout_ms = 60000;
module_param(rpc_timeout_ms, uint, 0644);
MODULE_PARM_DESC(rpc_timeout_ms, "how long a command of fwctl waits for its answer");

#define FWCTL_INFO	_IO(0x9a, 0)
#define FWCTL_RPC	_IO(0x9a, 1)

#define DEVICE_TYPE_MLX5	1
#define SCOPE_DEBUG_WRITE_FULL	3

struct fwctl_info {
	__u32 size, flags, out_device_type, device_data_len;
	__aligned_u64 out_device_data;
};

struct fwctl_rpc {
	__u32 size, scope, in_len, out_len;
	__aligned_u64 in, out;
};

struct fwctl_info_mlx5 { __u32 uid, uctx_caps; };

struct fwctl_node {
	struct device dev;
	struct cdev cdev;
	struct rw_semaphore alive;	/* held for reading while a command is under way */
	struct function *fn;		/* NULL: the function is gone */
};

static dev_t node_first;
static DEFINE_IDA(nodes);

static char *node_devnode(struct device *dev, umode_t *mode)
{
	return kasprintf(GFP_KERNEL, "fwctl/%s", dev_name(dev));
}

static struct class node_class = { .name = "fwctl", .owner = THIS_MODULE, .devnode = node_devnode };

static int node_open(struct inode *inode, struct file *file)
{
	struct fwctl_node *node = container_of(inode->i_cdev, struct fwctl_node, cdev);
	int rc = 0;

	down_read(&node->alive);
	if (!node->fn)
		rc = -ENODEV;
	up_read(&node->alive);
	if (rc)
		return rc;
	get_device(&node->dev);
	file->private_data = node;
	return 0;
}

static int node_release(struct inode *inode, struct file *file)
{
	put_device(&((struct fwctl_node *)file->private_data)->dev);
	return 0;
}

static long node_info(void __user *arg, u32 size)
{
	struct fwctl_info_mlx5 mlx5 = { .uid = 1 };
	struct fwctl_info info;
	u32 room;
	int rc = copy_struct_from_user(&info, sizeof(info), arg, size);

	if (rc)
		return rc;
	if (info.flags)
		return -EOPNOTSUPP;
	room = info.device_data_len;
	info.device_data_len = sizeof(mlx5);
	info.out_device_type = DEVICE_TYPE_MLX5;
	if (room && copy_to_user(u64_to_user_ptr(info.out_device_data), &mlx5, min_t(u32, room, sizeof(mlx5))))
		return -EFAULT;
	return copy_to_user(arg, &info, min_t(u32, size, sizeof(info))) ? -EFAULT : 0;
}

static void call_end(struct function *fn, struct call *call)
{
	spin_lock(&fn->lock);
	list_del_init(&call->list);
	spin_unlock(&fn->lock);
}

/* Does a command; the answer is of who calls, who frees it. */
static int node_call(struct function *fn, struct fwctl_rpc *rpc, struct call *call)
{
	struct message *m = message_new(SOFTPCI_RPC, rpc->in_len);
	long left;
	int rc;

	if (!m)
		return -ENOMEM;
	m->head.value = cpu_to_le32(rpc->scope);
	m->head.value2 = cpu_to_le32(rpc->out_len);
	if (copy_from_user(m->data, u64_to_user_ptr(rpc->in), rpc->in_len)) {
		kvfree(m);
		return -EFAULT;
	}
	init_completion(&call->done);
	INIT_LIST_HEAD(&call->list);
	spin_lock(&fn->lock);
	rc = fn->calls_closed ? -ENODEV : 0;
	if (!rc) {
		call->token = ++fn->token;
		m->head.token = cpu_to_le32(call->token);
		list_add_tail(&call->list, &fn->calls);
	}
	spin_unlock(&fn->lock);
	if (rc)
		kvfree(m);
	else
		rc = function_emit(fn, m);
	if (!rc) {
		left = wait_for_completion_killable_timeout(&call->done, msecs_to_jiffies(rpc_timeout_ms));
		rc = left < 0 ? left : left ? 0 : -ETIMEDOUT;
	}
	call_end(fn, call); /* from here on nobody answers */
	return rc ? rc : call->rc;
}

static long node_rpc(struct fwctl_node *node, void __user *arg, u32 size)
{
	struct call call = {};
	struct fwctl_rpc rpc;
	int rc = copy_struct_from_user(&rpc, sizeof(rpc), arg, size);

	if (rc)
		return rc;
	if (rpc.in_len > SOFTPCI_RPC_MAX || rpc.out_len > SOFTPCI_RPC_MAX)
		return -EMSGSIZE;
	if (rpc.scope > SCOPE_DEBUG_WRITE_FULL)
		return -EOPNOTSUPP;
	if (rpc.scope == SCOPE_DEBUG_WRITE_FULL && !capable(CAP_SYS_RAWIO))
		return -EPERM;
	rc = node_call(node->fn, &rpc, &call);
	if (!rc && copy_to_user(u64_to_user_ptr(rpc.out), call.answer, min(rpc.out_len, call.size)))
		rc = -EFAULT;
	rpc.out_len = call.size;
	kvfree(call.answer);
	if (!rc && copy_to_user(arg, &rpc, min_t(u32, size, sizeof(rpc))))
		rc = -EFAULT;
	return rc;
}

static long node_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct fwctl_node *node = file->private_data;
	void __user *at = (void __user *)arg;
	u32 size, least;
	long rc;

	if (cmd == FWCTL_INFO)
		least = sizeof(struct fwctl_info);
	else if (cmd == FWCTL_RPC)
		least = sizeof(struct fwctl_rpc);
	else
		return -ENOTTY;
	if (get_user(size, (u32 __user *)at))
		return -EFAULT;
	if (size < least)
		return -EINVAL;
	down_read(&node->alive);
	if (!node->fn)
		rc = -ENODEV;
	else if (cmd == FWCTL_INFO)
		rc = node_info(at, size);
	else
		rc = node_rpc(node, at, size);
	up_read(&node->alive);
	return rc;
}

static const struct file_operations node_file = {
	.owner = THIS_MODULE,
	.open = node_open,
	.release = node_release,
	.unlocked_ioctl = node_ioctl,
};

static void node_free(struct device *dev)
{
	struct fwctl_node *node = container_of(dev, struct fwctl_node, dev);

	ida_free(&nodes, dev->devt - node_first);
	kfree(node);
}

struct fwctl_node *node_add(struct function *fn, struct device *parent)
{
	struct fwctl_node *node = kzalloc(sizeof(*node), GFP_KERNEL);
	int number, rc;

	if (!node)
		return ERR_PTR(-ENOMEM);
	number = ida_alloc_max(&nodes, NODES_MAX - 1, GFP_KERNEL);
	if (number < 0) {
		kfree(node);
		return ERR_PTR(number);
	}
	init_rwsem(&node->alive);
	node->fn = fn;
	spin_lock(&fn->lock);
	fn->calls_closed = fn->gone;
	spin_unlock(&fn->lock);
	device_initialize(&node->dev);
	node->dev.devt = node_first + number;
	node->dev.class = &node_class;
	node->dev.parent = parent;
	node->dev.release = node_free;
	cdev_init(&node->cdev, &node_file);
	node->cdev.owner = THIS_MODULE;
	rc = dev_set_name(&node->dev, "fwctl%d", number);
	if (!rc)
		rc = cdev_device_add(&node->cdev, &node->dev);
	if (rc) {
		put_device(&node->dev);
		return ERR_PTR(rc);
	}
	return node;
}

/* The commands that wait end, and none begins. */
static void calls_close(struct function *fn)
{
	struct call *call;

	spin_lock(&fn->lock);
	fn->calls_closed = true;
	list_for_each_entry(call, &fn->calls, list) {
		if (completion_done(&call->done))
			continue;
		call->rc = -ENODEV;
		complete(&call->done);
	}
	spin_unlock(&fn->lock);
}

/* Files that are open lead nowhere from now on. */
void node_remove(struct fwctl_node *node)
{
	cdev_device_del(&node->cdev, &node->dev);
	calls_close(node->fn);
	down_write(&node->alive);
	node->fn = NULL;
	up_write(&node->alive);
	put_device(&node->dev);
}

void node_cancel(struct function *fn) { calls_close(fn); }

int node_answer(struct function *fn, const struct softpci_head *head, const u8 *data, u32 size)
{
	struct call *call;
	void *answer = kvmalloc(size, GFP_KERNEL);
	int rc = -ENOENT;

	if (!answer)
		return -ENOMEM;
	memcpy(answer, data, size);
	spin_lock(&fn->lock);
	list_for_each_entry(call, &fn->calls, list) {
		if (call->token != le32_to_cpu(head->token) || completion_done(&call->done))
			continue;
		call->rc = -(int)min_t(u32, le32_to_cpu(head->status), MAX_ERRNO);
		call->size = size;
		call->answer = answer;
		answer = NULL;
		complete(&call->done);
		rc = 0;
		break;
	}
	spin_unlock(&fn->lock);
	kvfree(answer);
	return rc;
}

int node_init(void)
{
	int rc = alloc_chrdev_region(&node_first, 0, NODES_MAX, "fwctl");

	if (rc)
		return rc;
	rc = class_register(&node_class);
	if (rc)
		unregister_chrdev_region(node_first, NODES_MAX);
	return rc;
}

void node_exit(void)
{
	class_unregister(&node_class);
	unregister_chrdev_region(node_first, NODES_MAX);
	ida_destroy(&nodes);
}
