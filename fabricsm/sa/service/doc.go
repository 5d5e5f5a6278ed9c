// Package service keeps the services that hosts offer to others by name: ServiceRecord (IBTA volume 1, 15.2.5.14).
//
// A record is identified by ServiceID, ServiceGID and ServiceP_Key. It is registered by the port with that GID, or by a
// requester that may act for the port. It exists for the time of its lease; for an untrusted requester a lease is bounded.
// A record with a ServiceKey is replaced or deleted only with that key, or by a trusted requester, which can read it
// anyway.
//
// A record with a P_Key is visible to ports that can communicate with its port in that partition. A record without one is
// visible to ports that share any partition with its port. A record is dropped when its port surely no longer has the
// P_Key. A record without a P_Key is dropped when the port leaves the partition that was its first, or gets its first one:
// then the port has moved to another tenant.
package service
