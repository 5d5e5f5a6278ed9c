/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Inside softpci. A function is one open of /dev/softpci: a PCI bus of a domain of its
 * own, with one function on it.
 *
 * Locks: function->space guards what accesses to the configuration space see; it is
 * taken with interrupts off, and nothing else under it. function->lock guards
 * the messages. Neither is held while anything sleeps.
 */
#ifndef FUNCTION_H
#define FUNCTION_H

#include <linux/completion.h>
#include <linux/irq_work.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "softpci.h"

/* Messages that wait for the peer; more are refused. */
#define QUEUE_MAX	256

struct message {
	struct list_head list;
	u32 payload;			/* bytes */
	struct softpci_head head;
	u8 data[];
};

/* A command of fwctl that waits for its answer. */
struct call {
	struct list_head list;
	u32 token;
	int rc;
	u32 size;
	void *answer;			/* kvmalloc; of who waits */
	struct completion done;
};

/* How far a command of the mailbox is. */
enum mailbox_state { MAILBOX_IDLE, MAILBOX_WANTED, MAILBOX_TAKEN };

struct fwctl_node;

struct function {
	struct kref ref;

	raw_spinlock_t space;		/* of all below up to command */
	u8 config[SOFTPCI_CONFIG_SIZE];
	u32 ticket, semaphore, address, data, domain; /* of the gateway */
	u32 mailbox_owner;		/* semaphore of the mailbox */
	u32 control;			/* of the mailbox */
	enum mailbox_state state;
	u32 command;			/* token of the one under way */
	u8 mailbox[SOFTPCI_MAILBOX_MAX];

	spinlock_t lock;		/* of all below up to token */
	struct list_head out;
	u32 queued;
	struct list_head calls;
	bool calls_closed;		/* none can begin: the node or the peer is gone */
	bool gone;			/* the peer closed the file */
	u32 token;

	struct mutex setup;		/* of the bus */
	struct softpci_attach attach;
	struct pci_bus *bus;
	struct resource buses;		/* the one number that the domain has */
	struct pci_sysdata sysdata;
	struct fwctl_node *node;
	wait_queue_head_t wait;
	struct irq_work wake;
};

/* file.c */
int file_init(void);
void file_exit(void);
struct message *message_new(u32 type, u32 payload);
int function_emit(struct function *fn, struct message *m);	/* takes the message in any case */
void function_get(struct function *fn);
void function_put(struct function *fn);

/* space.c: the configuration space */
extern struct pci_ops space_ops;
void space_init(struct function *fn);
/* Takes the command that waits in the mailbox; NULL if there is none, or no memory. */
struct message *space_command(struct function *fn);
bool space_wants(struct function *fn);
int space_done(struct function *fn, const struct softpci_head *head, const u8 *data, u32 size);

/* bus.c */
int bus_init(void);
void bus_exit(void);
int bus_add(struct function *fn);
void bus_remove(struct function *fn);

/* node.c: the device node of fwctl */
int node_init(void);
void node_exit(void);
struct fwctl_node *node_add(struct function *fn, struct device *parent);
void node_remove(struct fwctl_node *node);
int node_answer(struct function *fn, const struct softpci_head *head, const u8 *data, u32 size);
void node_cancel(struct function *fn);	/* the peer is gone: nobody answers */

#endif
