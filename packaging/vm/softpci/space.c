// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The configuration space. It is answered here, without the peer, since accesses
 * to it must not sleep; a command in the mailbox is done by the peer, while the
 * host polls for its end.
 *
 * The vendor specific capability is a gateway to address spaces. Dwords from its offset:
 * head; control (space, and from bit 29 whether it has it); ticket; semaphore; address
 * with the flag in bit 31; data. The flag says what is wanted: 1 a write, 0 a
 * read; and its other value that it is done.
 */
#include <linux/pci.h>
#include <linux/slab.h>
#include <asm/unaligned.h>

#include "function.h"

enum gateway_dword { GATEWAY_CONTROL = 4, GATEWAY_TICKET = 8, GATEWAY_SEMAPHORE = 12, GATEWAY_ADDRESS = 16, GATEWAY_DATA = 20 };

#define GATEWAY_FLAG	BIT(31)
#define GATEWAY_HAS_IT	(1U << 29)

/* Address spaces of the gateway. */
enum domain { DOMAIN_COMMANDS_EXTENDED = 1, DOMAIN_REGISTERS = 2, DOMAIN_COMMANDS = 3, DOMAIN_SEMAPHORES = 10 };

/* Addresses in the space of commands. */
#define COMMAND_CONTROL	0x0
#define COMMAND_SIZE	0x1000
#define COMMAND_MAILBOX	0x100000

/* The control dword of commands: opcode in its upper half, status above bit 8. */
#define CONTROL_BUSY	BIT(0)
#define CONTROL_STATUS	0xff00U

/* What is read where nothing is. */
#define BAD_ACCESS	0xbadacce5U

#define VPD_ADDRESS	2
#define VPD_DATA	4

void space_init(struct function *fn)
{
	memcpy(fn->config, fn->attach.config, sizeof(fn->config));
}

static u32 mailbox_size(const struct function *fn) { return le32_to_cpu(fn->attach.mailbox_size); }

static bool domain_known(u32 domain)
{
	return domain == DOMAIN_COMMANDS_EXTENDED || domain == DOMAIN_REGISTERS || domain == DOMAIN_COMMANDS ||
	       domain == DOMAIN_SEMAPHORES;
}

static u32 domain_read(struct function *fn, u32 address)
{
	u32 i;

	switch (fn->domain & 0xffff) {
	case DOMAIN_REGISTERS:
		for (i = 0; i < le32_to_cpu(fn->attach.words); i++)
			if (le32_to_cpu(fn->attach.word[i].address) == address)
				return le32_to_cpu(fn->attach.word[i].value);
		break;
	case DOMAIN_SEMAPHORES:
		if (address == 0)
			return fn->mailbox_owner;
		break;
	case DOMAIN_COMMANDS:
	case DOMAIN_COMMANDS_EXTENDED:
		if (address == COMMAND_CONTROL)
			return fn->control;
		if (address == COMMAND_SIZE)
			return mailbox_size(fn);
		if (address >= COMMAND_MAILBOX && address - COMMAND_MAILBOX < mailbox_size(fn))
			return get_unaligned_be32(fn->mailbox + address - COMMAND_MAILBOX);
		break;
	}
	return BAD_ACCESS;
}

static void domain_write(struct function *fn, u32 address, u32 value)
{
	switch (fn->domain & 0xffff) {
	case DOMAIN_SEMAPHORES:
		if (address == 0 && (!fn->mailbox_owner || !value))
			fn->mailbox_owner = value;
		break;
	case DOMAIN_COMMANDS:
	case DOMAIN_COMMANDS_EXTENDED:
		if (fn->control & CONTROL_BUSY)
			break;
		if (address == COMMAND_CONTROL) {
			fn->control = value;
			if (value & CONTROL_BUSY) {
				fn->control &= ~CONTROL_STATUS;
				fn->state = MAILBOX_WANTED;
				irq_work_queue(&fn->wake);
			}
		} else if (address >= COMMAND_MAILBOX && address - COMMAND_MAILBOX < mailbox_size(fn)) {
			put_unaligned_be32(value, fn->mailbox + address - COMMAND_MAILBOX);
		}
		break;
	}
}

static u32 gateway_read(struct function *fn, u32 at)
{
	switch (at) {
	case GATEWAY_CONTROL:
		return fn->domain;
	case GATEWAY_TICKET:
		return ++fn->ticket ? fn->ticket : ++fn->ticket;
	case GATEWAY_SEMAPHORE:
		return fn->semaphore;
	case GATEWAY_ADDRESS:
		return fn->address;
	default:
		return fn->data;
	}
}

static void gateway_write(struct function *fn, u32 at, u32 value)
{
	switch (at) {
	case GATEWAY_CONTROL:
		fn->domain = (value & 0xffff) | (domain_known(value & 0xffff) ? GATEWAY_HAS_IT : 0);
		break;
	case GATEWAY_SEMAPHORE:
		if (!fn->semaphore || !value)
			fn->semaphore = value;
		break;
	case GATEWAY_ADDRESS:
		fn->address = value ^ GATEWAY_FLAG;
		if (value & GATEWAY_FLAG)
			domain_write(fn, value & ~GATEWAY_FLAG, fn->data);
		else
			fn->data = domain_read(fn, value);
		break;
	case GATEWAY_DATA:
		fn->data = value;
		break;
	}
}

/* in_gateway reports whether a dword is one of the gateway's but its head. */
static bool in_gateway(struct function *fn, u32 where)
{
	u32 at = le32_to_cpu(fn->attach.gateway);

	return where > at && where < at + 0x18;
}

/* The host writes an address without the flag, and reads the data once the flag is set. */
static void vpd_write(struct function *fn, u32 where)
{
	u32 at = le32_to_cpu(fn->attach.vpd), address;
	u8 *cap = fn->config + at;

	if (!at || where != at + VPD_ADDRESS)
		return;
	address = get_unaligned_le16(cap + VPD_ADDRESS);
	if (address & 0x8000) { /* a write: it ends, and changes nothing */
		put_unaligned_le16(address & 0x7fff, cap + VPD_ADDRESS);
		return;
	}
	memset(cap + VPD_DATA, 0, 4);
	if (address < le32_to_cpu(fn->attach.vpd_size))
		memcpy(cap + VPD_DATA, fn->attach.vpd_data + address,
		       min_t(u32, 4, le32_to_cpu(fn->attach.vpd_size) - address));
	put_unaligned_le16(address | 0x8000, cap + VPD_ADDRESS);
}

static struct function *of_bus(struct pci_bus *bus)
{
	return container_of((struct pci_sysdata *)bus->sysdata, struct function, sysdata);
}

static int space_read(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 *value)
{
	struct function *fn = of_bus(bus);
	unsigned long flags;

	*value = ~0;
	if (devfn || READ_ONCE(fn->gone))
		return PCIBIOS_DEVICE_NOT_FOUND;
	*value = 0;
	if (where < 0 || where + size > SOFTPCI_CONFIG_SIZE)
		return PCIBIOS_SUCCESSFUL; /* extended: no capability */
	raw_spin_lock_irqsave(&fn->space, flags);
	if (size == 4 && in_gateway(fn, where))
		*value = gateway_read(fn, where - le32_to_cpu(fn->attach.gateway));
	else
		memcpy(value, fn->config + where, size);
	raw_spin_unlock_irqrestore(&fn->space, flags);
	return PCIBIOS_SUCCESSFUL;
}

static int space_write(struct pci_bus *bus, unsigned int devfn, int where, int size, u32 value)
{
	struct function *fn = of_bus(bus);
	unsigned long flags;
	int i;

	if (devfn || READ_ONCE(fn->gone))
		return PCIBIOS_DEVICE_NOT_FOUND;
	if (where < 0 || where + size > SOFTPCI_CONFIG_SIZE)
		return PCIBIOS_SUCCESSFUL;
	raw_spin_lock_irqsave(&fn->space, flags);
	if (in_gateway(fn, where)) {
		if (size == 4)
			gateway_write(fn, where - le32_to_cpu(fn->attach.gateway), value);
	} else {
		for (i = 0; i < size; i++) {
			u8 mask = fn->attach.writable[where + i];

			fn->config[where + i] = (fn->config[where + i] & ~mask) | ((value >> (8 * i)) & mask);
		}
		vpd_write(fn, where);
	}
	raw_spin_unlock_irqrestore(&fn->space, flags);
	return PCIBIOS_SUCCESSFUL;
}

struct pci_ops space_ops = { .read = space_read, .write = space_write };

bool space_wants(struct function *fn)
{
	unsigned long flags;
	bool wants;

	raw_spin_lock_irqsave(&fn->space, flags);
	wants = fn->state == MAILBOX_WANTED;
	raw_spin_unlock_irqrestore(&fn->space, flags);
	return wants;
}

struct message *space_command(struct function *fn)
{
	struct message *m;
	unsigned long flags;

	if (!space_wants(fn))
		return NULL;
	m = message_new(SOFTPCI_COMMAND, mailbox_size(fn));
	if (!m)
		return NULL;
	raw_spin_lock_irqsave(&fn->space, flags);
	if (fn->state == MAILBOX_WANTED) {
		fn->state = MAILBOX_TAKEN;
		m->head.token = cpu_to_le32(++fn->command);
		m->head.value = cpu_to_le32(fn->control >> 16);
		memcpy(m->data, fn->mailbox, m->payload);
	} else { /* another reader has it */
		m->payload = U32_MAX;
	}
	raw_spin_unlock_irqrestore(&fn->space, flags);
	if (m->payload == U32_MAX) {
		kvfree(m);
		return NULL;
	}
	return m;
}

int space_done(struct function *fn, const struct softpci_head *head, const u8 *data, u32 size)
{
	unsigned long flags;
	int rc = 0;

	if (size > mailbox_size(fn) || le32_to_cpu(head->status) > 0xff)
		return -EINVAL;
	raw_spin_lock_irqsave(&fn->space, flags);
	if (fn->state != MAILBOX_TAKEN || le32_to_cpu(head->token) != fn->command) {
		rc = -ENOENT;
	} else {
		memcpy(fn->mailbox, data, size);
		fn->control = (fn->control & ~(CONTROL_STATUS | CONTROL_BUSY)) | le32_to_cpu(head->status) << 8;
		fn->state = MAILBOX_IDLE;
	}
	raw_spin_unlock_irqrestore(&fn->space, flags);
	return rc;
}
