// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* softpci: PCI functions without hardware, whose firmware is a user process. */
#include <linux/module.h>

#include "function.h"

MODULE_LICENSE("Dual BSD/GPL");
MODULE_AUTHOR("Portcullis");
MODULE_DESCRIPTION("PCI functions of adapters whose firmware is a user process, for tests");

static int __init softpci_init(void)
{
	int rc;

	BUILD_BUG_ON(sizeof(struct softpci_head) != SOFTPCI_HEAD_SIZE);
	BUILD_BUG_ON(sizeof(struct softpci_attach) != SOFTPCI_ATTACH_SIZE);
	rc = node_init();
	if (rc)
		return rc;
	rc = bus_init();
	if (rc)
		goto node;
	rc = file_init();
	if (rc)
		goto bus;
	return 0;
bus:
	bus_exit();
node:
	node_exit();
	return rc;
}

static void __exit softpci_exit(void)
{
	file_exit();
	bus_exit();
	node_exit();
}

module_init(softpci_init);
module_exit(softpci_exit);
