// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Changes of the port, told to the kernel when the peer tells them. */
#include <asm/unaligned.h>

#include "hca.h"

static const enum ib_event_type kernel_events[] = {
	[SOFTHCA_EVENT_LID] = IB_EVENT_LID_CHANGE,
	[SOFTHCA_EVENT_GID] = IB_EVENT_GID_CHANGE,
	[SOFTHCA_EVENT_PKEY] = IB_EVENT_PKEY_CHANGE,
	[SOFTHCA_EVENT_ACTIVE] = IB_EVENT_PORT_ACTIVE,
	[SOFTHCA_EVENT_ERROR] = IB_EVENT_PORT_ERR,
	[SOFTHCA_EVENT_SM] = IB_EVENT_SM_CHANGE,
	[SOFTHCA_EVENT_REREGISTER] = IB_EVENT_CLIENT_REREGISTER,
	[SOFTHCA_EVENT_FATAL] = IB_EVENT_DEVICE_FATAL,
};

static void event_dispatch(struct hca *hca, u32 port, u32 event)
{
	struct ib_event e = { .device = &hca->ib, .event = kernel_events[event] };

	e.element.port_num = port;
	ib_dispatch_event(&e);
}

/* ib_dispatch_event must not be called before the device is registered, nor when it is no more. */
int event_take(struct hca *hca, u32 port, u32 event)
{
	unsigned long flags;

	if (event < 1 || event >= ARRAY_SIZE(kernel_events))
		return -EINVAL;
	spin_lock_irqsave(&hca->event_lock, flags);
	if (hca->registered)
		event_dispatch(hca, port, event);
	else
		__set_bit(event, &hca->ports[port].missed);
	spin_unlock_irqrestore(&hca->event_lock, flags);
	return 0;
}

/* The adapter's table changes at once; the kernel's copy follows with the event. */
int event_pkeys(struct hca *hca, u32 port, const u8 *data, u32 size)
{
	struct port *p = &hca->ports[port];
	unsigned long flags;
	u32 i;

	if (size != 2 * hca->pkey_count)
		return -EINVAL;
	spin_lock_irqsave(&p->lock, flags);
	for (i = 0; i < hca->pkey_count; i++)
		p->pkeys[i] = get_unaligned_be16(data + 2 * i);
	p->told = true;
	spin_unlock_irqrestore(&p->lock, flags);
	return 0;
}

void event_registered(struct hca *hca)
{
	unsigned long flags;
	u32 port, event;

	spin_lock_irqsave(&hca->event_lock, flags);
	hca->registered = true;
	for (port = 1; port <= hca->ib.phys_port_cnt; port++) {
		for_each_set_bit(event, &hca->ports[port].missed, ARRAY_SIZE(kernel_events))
			event_dispatch(hca, port, event);
		hca->ports[port].missed = 0;
	}
	spin_unlock_irqrestore(&hca->event_lock, flags);
}

void event_unregister(struct hca *hca)
{
	unsigned long flags;

	spin_lock_irqsave(&hca->event_lock, flags);
	hca->registered = false;
	spin_unlock_irqrestore(&hca->event_lock, flags);
}
