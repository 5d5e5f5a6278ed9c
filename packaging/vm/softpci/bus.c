// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The bus with the function, and the driver that has it. */
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/numa.h>
#include <linux/pci.h>

#include "function.h"

/* Domain 0 is the machine's own. */
static DEFINE_IDA(domains);

static void bus_tell(struct function *fn, u32 type)
{
	struct message *m = message_new(type, 0);

	if (m)
		function_emit(fn, m);
}

static bool ours(struct pci_dev *pdev) { return pdev->bus->ops == &space_ops; }

static struct function *of_device(struct pci_dev *pdev)
{
	return container_of((struct pci_sysdata *)pdev->bus->sysdata, struct function, sysdata);
}

static int softpci_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct function *fn;
	struct fwctl_node *node = NULL;

	if (!ours(pdev))
		return -ENODEV;
	fn = of_device(pdev);
	if (le32_to_cpu(fn->attach.flags) & SOFTPCI_FWCTL) {
		node = node_add(fn, &pdev->dev);
		if (IS_ERR(node))
			return PTR_ERR(node);
	}
	pci_set_drvdata(pdev, node);
	bus_tell(fn, SOFTPCI_BOUND);
	return 0;
}

static void softpci_remove(struct pci_dev *pdev)
{
	struct fwctl_node *node = pci_get_drvdata(pdev);

	if (node)
		node_remove(node);
	bus_tell(of_device(pdev), SOFTPCI_UNBOUND);
}

static const struct pci_device_id softpci_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_MELLANOX, PCI_ANY_ID) },
	{ }
};

static struct pci_driver softpci_driver = {
	.name = "softpci",
	.id_table = softpci_ids,
	.probe = softpci_probe,
	.remove = softpci_remove,
};

/* The last reference to the bridge is gone: nothing reads fn->sysdata any more. */
static void bridge_released(struct pci_host_bridge *bridge)
{
	struct function *fn = bridge->release_data;

	ida_free(&domains, fn->sysdata.domain);
	function_put(fn);
}

int bus_add(struct function *fn)
{
	LIST_HEAD(resources);
	int domain = ida_alloc_range(&domains, 1, 0xffff, GFP_KERNEL);

	if (domain < 0)
		return domain;
	fn->sysdata.domain = domain;
	fn->sysdata.node = NUMA_NO_NODE;
	fn->buses = (struct resource){ .name = "softpci", .start = 0, .end = 0, .flags = IORESOURCE_BUS };
	pci_add_resource(&resources, &fn->buses);
	pci_lock_rescan_remove();
	fn->bus = pci_create_root_bus(NULL, 0, &space_ops, &fn->sysdata, &resources);
	if (!fn->bus) {
		pci_unlock_rescan_remove();
		pci_free_resource_list(&resources);
		ida_free(&domains, domain);
		return -ENOMEM;
	}
	function_get(fn);
	pci_set_host_bridge_release(to_pci_host_bridge(fn->bus->bridge), bridge_released, fn);
	pci_scan_child_bus(fn->bus);
	pci_bus_add_devices(fn->bus);
	pci_unlock_rescan_remove();
	return 0;
}

void bus_remove(struct function *fn)
{
	mutex_lock(&fn->setup);
	if (fn->bus) {
		pci_lock_rescan_remove();
		pci_stop_root_bus(fn->bus);
		pci_remove_root_bus(fn->bus);
		pci_unlock_rescan_remove();
		fn->bus = NULL;
	}
	mutex_unlock(&fn->setup);
}

int bus_init(void) { return pci_register_driver(&softpci_driver); }

void bus_exit(void)
{
	pci_unregister_driver(&softpci_driver);
	ida_destroy(&domains);
}
