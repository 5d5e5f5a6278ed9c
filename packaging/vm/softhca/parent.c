// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The PCI function that an adapter is on: sysfs shows it as the parent of the
 * device, and the device goes away when the driver of the function does.
 */
#include <linux/device.h>
#include <linux/mutex.h>
#include <linux/pci.h>

#include "hca.h"

static DEFINE_MUTEX(children_lock);
static LIST_HEAD(children);	/* registered devices with a parent */

/*
 * Finds the function that the attach message names, and keeps its driver
 * bound until parent_unlock. Without a name there is nothing to do.
 */
int parent_lock(struct peer *peer)
{
	unsigned int domain, bus, slot, function;
	struct pci_dev *parent;
	char more;

	if (!peer->attach.pci[0])
		return 0;
	if (sscanf(peer->attach.pci, "%x:%x:%x.%x%c", &domain, &bus, &slot, &function, &more) != 4 ||
	    bus > 0xff || slot > 0x1f || function > 7)
		return -EINVAL;
	parent = pci_get_domain_bus_and_slot(domain, bus, PCI_DEVFN(slot, function));
	if (!parent)
		return -ENXIO;
	device_lock(&parent->dev);
	if (!parent->dev.driver) {
		device_unlock(&parent->dev);
		pci_dev_put(parent);
		return -ENXIO;
	}
	peer->parent = parent;
	return 0;
}

void parent_unlock(struct peer *peer, bool registered)
{
	struct pci_dev *parent = peer->parent;

	if (!parent)
		return;
	if (registered) {
		mutex_lock(&children_lock);
		list_add(&peer->child, &children);
		mutex_unlock(&children_lock);
	}
	device_unlock(&parent->dev);
	if (!registered)
		parent_put(peer);
}

/* The device is unregistered, or never was. */
void parent_put(struct peer *peer)
{
	if (!peer->parent)
		return;
	mutex_lock(&children_lock);
	list_del_init(&peer->child);
	mutex_unlock(&children_lock);
	pci_dev_put(peer->parent);
	peer->parent = NULL;
}

/* Takes a device of the function off the list. */
static struct peer *child_of(struct device *function)
{
	struct peer *peer, *found = NULL;

	mutex_lock(&children_lock);
	list_for_each_entry(peer, &children, child) {
		if (&peer->parent->dev == function) {
			list_del_init(&peer->child);
			peer_get(peer);
			found = peer;
			break;
		}
	}
	mutex_unlock(&children_lock);
	return found;
}

/* The function is locked by its bus, so no device comes to it meanwhile. */
static int parent_told(struct notifier_block *block, unsigned long action, void *data)
{
	struct peer *peer;

	if (action != BUS_NOTIFY_UNBIND_DRIVER)
		return NOTIFY_DONE;
	while ((peer = child_of(data))) {
		peer_pull(peer);
		flush_work(&peer->detach_work);
		peer_put(peer);
	}
	return NOTIFY_OK;
}

static struct notifier_block parent_block = { .notifier_call = parent_told };

int parent_init(void) { return bus_register_notifier(&pci_bus_type, &parent_block); }
void parent_exit(void) { bus_unregister_notifier(&pci_bus_type, &parent_block); }
