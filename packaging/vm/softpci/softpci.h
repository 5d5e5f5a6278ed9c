/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What crosses /dev/softpci: messages of a fixed head and a payload. One read
 * returns one message, one write takes one. All fields are little-endian; what
 * mailboxes, commands and answers hold is as the firmware has it.
 */
#ifndef SOFTPCI_H
#define SOFTPCI_H

#include <linux/types.h>

#define SOFTPCI_VERSION		1

#define SOFTPCI_HEAD_SIZE	24
#define SOFTPCI_CONFIG_SIZE	256
#define SOFTPCI_VPD_MAX		1024
#define SOFTPCI_WORDS_MAX	16
#define SOFTPCI_MAILBOX_MAX	4096
#define SOFTPCI_RPC_MAX		16384
#define SOFTPCI_MESSAGE_MAX	(SOFTPCI_HEAD_SIZE + SOFTPCI_RPC_MAX)

enum softpci_type {
	SOFTPCI_ATTACH = 1,	/* to the kernel: add the function; payload: struct softpci_attach */
	SOFTPCI_ATTACHED = 2,	/* from the kernel: payload: its address, such as 0001:00:00.0 */
	SOFTPCI_COMMAND = 3,	/* from the kernel: value is the opcode, payload the mailbox */
	SOFTPCI_DONE = 4,	/* to the kernel: status and mailbox after the command of that token */
	SOFTPCI_RPC = 5,	/* from the kernel: value is the scope, value2 the room for the answer */
	SOFTPCI_ANSWER = 6,	/* to the kernel: status is an error number, payload the answer */
	SOFTPCI_BOUND = 7,	/* from the kernel: a driver has the function */
	SOFTPCI_UNBOUND = 8,	/* from the kernel: it has it no more: removed, or unbound */
};

struct softpci_head {
	__le32 size;		/* of the message */
	__le32 type;
	__le32 token;
	__le32 status;
	__le32 value;
	__le32 value2;
} __attribute__((packed));

#define SOFTPCI_FWCTL		0x01	/* the function has a device node of fwctl */

/* A dword of the configuration registers ("CR space") that can be read. */
struct softpci_word {
	__le32 address;
	__le32 value;
} __attribute__((packed));

struct softpci_attach {
	__le32 version;
	__le32 flags;
	__le32 gateway;		/* offset of the vendor specific capability in the configuration space */
	__le32 vpd;		/* offset of the capability for vital product data; 0: none */
	__le32 vpd_size;
	__le32 mailbox_size;
	__le32 words;
	__u8 config[SOFTPCI_CONFIG_SIZE];
	__u8 writable[SOFTPCI_CONFIG_SIZE];	/* bits that can be written */
	struct softpci_word word[SOFTPCI_WORDS_MAX];
	__u8 vpd_data[SOFTPCI_VPD_MAX];
} __attribute__((packed));

#define SOFTPCI_ATTACH_SIZE	1692

#endif
