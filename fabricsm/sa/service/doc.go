// Package service keeps what hosts offer to others by name: ServiceRecord (IBTA volume
// 1, 15.2.5.14).
//
// A record is identified by ServiceID, ServiceGID and ServiceP_Key, and registered by
// the port with that GID, or by who may act for it. It lives as long as its lease; for
// who is not trusted a lease is bounded. A record with a ServiceKey is replaced or
// deleted only with that key, or by who is trusted, who can read it anyway.
//
// A record with a P_Key is seen by those who can talk to the port in that partition,
// one without by those who share any partition with it. It is dropped when the port
// surely has the P_Key no longer; one without when the port is not in the partition any
// longer that was its first, or got its first one: it has changed hands.
package service
