// Package ufm serves the REST surface of UFM that controllers of other products call: partitions by their P_Keys, the ports and
// systems of hosts, the version. It keeps nothing of its own. A partition is a cluster and a member is a port of a host that is
// assigned to it, so each change is an order to the services that our own API calls, which judge the credential, keep the
// quarantine of P_Keys and write the audit log.
//
// What it does not have is refused with the reason, never accepted and left undone: limited membership, quality of service of a
// partition, GUIDs that inventory does not have.
package ufm
