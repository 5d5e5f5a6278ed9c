/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What crosses /dev/softhca: messages of a fixed head and a payload. One read
 * returns one message, one write takes one. Over a stream (a unix socket, a
 * virtio-serial port) messages follow each other; the first field is the size.
 * All fields are little-endian but for MADs, global route headers and GUIDs,
 * which are as on the wire.
 */
#ifndef SOFTHCA_H
#define SOFTHCA_H

#include <linux/types.h>

#define SOFTHCA_VERSION		2

#define SOFTHCA_HEAD_SIZE	96
#define SOFTHCA_PAYLOAD_MAX	4096	/* of a data packet; MADs have 256 */
#define SOFTHCA_MESSAGE_MAX	(SOFTHCA_HEAD_SIZE + SOFTHCA_PAYLOAD_MAX)
#define SOFTHCA_PORTS_MAX	4
#define SOFTHCA_PKEYS_MAX	128

enum softhca_type {
	SOFTHCA_ATTACH = 1,	/* to the kernel: register the adapter; payload: struct softhca_attach */
	SOFTHCA_ATTACHED = 2,	/* from the kernel: it is registered, or status says why not */
	SOFTHCA_SEND = 3,	/* from the kernel: a packet for the wire */
	SOFTHCA_RECEIVE = 4,	/* to the kernel: a packet from the wire */
	SOFTHCA_REQUEST = 5,	/* from the kernel: a MAD for the adapter's firmware */
	SOFTHCA_REPLY = 6,	/* to the kernel: its answer, with the token of the request */
	SOFTHCA_CAPABILITY = 7,	/* from the kernel: value are capability bits to set, value2 to clear */
	SOFTHCA_EVENT = 8,	/* to the kernel: value is an enum softhca_event */
	SOFTHCA_PKEYS = 9,	/* to the kernel: payload: the P_Key table of the port, as from now on */
	SOFTHCA_DETACH = 10,	/* to the kernel: pull the adapter, as the end of the file does */
};

enum softhca_event {
	SOFTHCA_EVENT_LID = 1,
	SOFTHCA_EVENT_GID = 2,
	SOFTHCA_EVENT_PKEY = 3,
	SOFTHCA_EVENT_ACTIVE = 4,
	SOFTHCA_EVENT_ERROR = 5,	/* the port is no longer active */
	SOFTHCA_EVENT_SM = 6,
	SOFTHCA_EVENT_REREGISTER = 7,
	SOFTHCA_EVENT_FATAL = 8,	/* of the whole device */
};

/* Flags of a message. */
#define SOFTHCA_GRH		0x01	/* the packet has a global route header */
#define SOFTHCA_HOST		0x02	/* the request comes from the host's software, not from the driver */
#define SOFTHCA_SOLICITED	0x04
#define SOFTHCA_IMMEDIATE	0x08
#define SOFTHCA_PATH		0x10	/* slid has only path bits: the peer adds the LID of the port */

/* Operations of a packet. */
enum softhca_opcode {
	SOFTHCA_DATAGRAM = 0,	/* MADs, and SEND of unreliable datagrams */
	SOFTHCA_RC_SEND = 1,	/* SEND of a reliable connection, one packet a message */
	SOFTHCA_RC_ACK = 2,	/* value is 0, or an enum softhca_nak */
};

enum softhca_nak {
	SOFTHCA_ACK = 0,
	SOFTHCA_NAK_SEQUENCE = 1,
	SOFTHCA_NAK_INVALID = 2,
	SOFTHCA_NAK_OPERATION = 3,
	SOFTHCA_NAK_NOT_READY = 4,	/* value2: the timer code to wait */
};

struct softhca_head {
	__le32 size;		/* of the message */
	__u8 type;
	__u8 port;
	__u8 flags;
	__u8 opcode;
	__le32 token;
	__le32 status;		/* a positive error number */
	__le32 source_qp;
	__le32 dest_qp;
	__le32 qkey;
	__le16 dlid;
	__le16 slid;
	__le16 pkey;
	__u8 sl;
	__u8 reserved;
	__le32 psn;
	__be32 immediate;
	__le32 value;
	__le32 value2;
	__le32 reserved2;
	__u8 grh[40];
} __attribute__((packed));

/* Flags of an adapter. */
#define SOFTHCA_FUNCTION	0x01	/* a virtual function: no subnet management */
#define SOFTHCA_PLANE		0x02	/* only subnet management: one plane of a multi-plane port */
#define SOFTHCA_CALLER		0x04	/* registered as the program that attaches it, as where that loads the driver */

struct softhca_attach {
	__le32 version;
	__le32 flags;
	__u8 ports;
	__u8 node_type;		/* as NodeInfo has it: 1 is a channel adapter */
	__le16 pkeys;		/* entries of each P_Key table */
	__le32 hold_ms;		/* how long sysfs shows the device without its ports */
	__le32 vendor;
	__le32 device;
	__le32 revision;
	__le16 firmware[3];	/* major, minor, sub-minor */
	__le16 reserved;
	__be64 node_guid;
	__be64 system_guid;
	char name[32];
	char description[64];
	char hca_type[32];
	char board[32];
	char pci[16];		/* address of the PCI function that it is on, such as 0001:00:00.0; empty: none */
} __attribute__((packed));

#define SOFTHCA_ATTACH_SIZE	228

#endif
