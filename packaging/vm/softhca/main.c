// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* softhca: an InfiniBand adapter without hardware, whose fabric is a user process. */
#include <linux/module.h>

#include "hca.h"

MODULE_LICENSE("Dual BSD/GPL");
MODULE_AUTHOR("Portcullis");
MODULE_DESCRIPTION("InfiniBand adapter whose fabric is a user process, for tests");

unsigned int firmware_timeout_ms = 2000;
module_param(firmware_timeout_ms, uint, 0644);
MODULE_PARM_DESC(firmware_timeout_ms, "how long an answer of the firmware is waited for");

struct workqueue_struct *softhca_wq;

static int __init softhca_init(void)
{
	int rc;

	BUILD_BUG_ON(sizeof(struct softhca_head) != SOFTHCA_HEAD_SIZE);
	BUILD_BUG_ON(sizeof(struct softhca_attach) != SOFTHCA_ATTACH_SIZE);
	softhca_wq = alloc_workqueue("softhca", WQ_UNBOUND, 0);
	if (!softhca_wq)
		return -ENOMEM;
	rc = parent_init();
	if (rc)
		goto no_parents;
	rc = peer_init();
	if (rc)
		goto no_peers;
	return 0;

no_peers:
	parent_exit();
no_parents:
	destroy_workqueue(softhca_wq);
	return rc;
}

static void __exit softhca_exit(void)
{
	peer_exit();
	/* Waits for adapters that are being unregistered. */
	destroy_workqueue(softhca_wq);
	parent_exit();
}

module_init(softhca_init);
module_exit(softhca_exit);
