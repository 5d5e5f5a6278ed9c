package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/fabricsm/ib"
)

// atOnce is how many hosts are written in one transaction.
const atOnce = 500

// siteTenant is the tenant of all clusters, unless each has one of its own.
const siteTenant = "acme"

// tenantName returns the tenant of a cluster.
func (g *ground) tenantName(cluster int) string {
	if g.apart {
		return fmt.Sprintf("tenant-%04d", cluster)
	}
	return siteTenant
}

// openRecords opens the store of a service that does not run.
func openRecords(ctx context.Context, state string) (*store.Store, error) {
	return etcd.Open(ctx, etcd.Options{Dir: state, Log: slog.New(slog.DiscardHandler), NoSync: true})
}

// alike is what the service itself wrote of one host, and writes of others like it.
type alike struct {
	judged string       // names what its evidence was judged by
	port   records.Port // as it was seen
}

// admitted writes the records of a site some of whose members are admitted into the store of
// a service that does not run: inventory with cables, one tenant, its clusters and their
// P_Keys, and of each host its assignment, accepted evidence and grant. No TPM took part: a
// software TPM for each of ten thousand hosts takes hours. The records say that the ports were
// seen and the P_Keys read back, too, lest the service writes of each host that its grant is
// under way, and then that it is admitted.
func (g *ground) admitted(ctx context.Context, state string, members []int, like *alike) (err error) {
	s, err := openRecords(ctx, state)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	now := time.Now().UTC().Truncate(time.Second)
	clusters := g.clusters(now)
	for from := 0; from < len(members); from += atOnce {
		some := members[from:min(from+atOnce, len(members))]
		revision, err := s.Update(ctx, func(tx *store.Tx) error {
			for _, h := range some {
				if err := g.admit(tx, h, &clusters[g.tenantOf(h)], like.judged, now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		_, err = s.Update(ctx, func(tx *store.Tx) error {
			for _, h := range some {
				if err := g.found(tx, h, like, revision, now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	_, err = s.Update(ctx, func(tx *store.Tx) error {
		if err := g.writeTenants(tx, clusters, now); err != nil {
			return err
		}
		if g.apart {
			if err := g.declare(tx); err != nil {
				return err
			}
		}
		return inventory.Heads().Put(tx, inventory.HeadKey, inventory.Head{Imported: now, Actor: "benchmark", Hosts: len(members)})
	})
	return err
}

// clusters are those of all tenants, without hosts.
func (g *ground) clusters(now time.Time) []tenancy.Cluster {
	out := make([]tenancy.Cluster, g.tenants)
	for t := range out {
		out[t] = tenancy.Cluster{Name: g.clusterName(t), Tenant: g.tenantName(t), PKey: pkeyOf(t), Created: now}
	}
	return out
}

// clusterName returns the name of the cluster with a number.
func (g *ground) clusterName(cluster int) string { return fmt.Sprintf("%s-%d", siteTenant, cluster) }

// writeTenants writes clusters, their P_Keys and their tenants.
func (g *ground) writeTenants(tx *store.Tx, clusters []tenancy.Cluster, now time.Time) error {
	by := map[string]*tenancy.Tenant{}
	for i := range clusters {
		c := &clusters[i]
		if by[c.Tenant] == nil {
			by[c.Tenant] = &tenancy.Tenant{Name: c.Tenant, Created: now}
		}
		by[c.Tenant].Clusters = append(by[c.Tenant].Clusters, c.Name)
		err := errors.Join(tenancy.Clusters().Put(tx, c.Name, *c),
			tenancy.PKeys().Put(tx, c.PKey.String(), tenancy.PKeyRecord{State: tenancy.PKeyUsed, Cluster: c.Name, Since: now}))
		if err != nil {
			return err
		}
	}
	for name, t := range by {
		if err := tenancy.Tenants().Put(tx, name, *t); err != nil {
			return err
		}
	}
	return nil
}

// hostID is the name of a host in the inventory.
func hostID(host int) string { return fmt.Sprintf("host-%05d", host) }

// inventoryOf is what the inventory has of a host whose EK has a digest.
func (g *ground) inventoryOf(host int, ek string) inventory.Host {
	return inventory.Host{ID: hostID(host), EK: ek, HCAs: []inventory.HCA{{
		NodeGUID: g.list.Nodes[g.hostAt(host)].GUID, Ports: []inventory.Port{{Num: 1, GUID: g.guid(host), Cable: g.place(host)}},
	}}}
}

// declare writes switches, and hosts of instances of the service, into the inventory.
func (g *ground) declare(tx *store.Tx) error {
	for i := range g.list.Nodes {
		n := &g.list.Nodes[i]
		if n.Type != ib.NodeSwitch {
			continue
		}
		sw := inventory.Switch{ID: strings.ToLower(n.Name), GUID: n.GUID, NumPorts: ib.PortNum(len(n.Ports) - 1)}
		if err := inventory.Switches().Put(tx, sw.ID, sw); err != nil {
			return err
		}
	}
	for _, h := range g.seats {
		at := g.inventoryOf(h, "")
		at.Role = inventory.RoleSM
		if err := inventory.Hosts().Put(tx, at.ID, at); err != nil {
			return err
		}
	}
	return nil
}

// complete reports how many hosts are admitted in the records of a service that does not run, with evidence that was judged
// and memberships that were read back. It also returns the records of one of them.
func complete(ctx context.Context, state string) (n int, like *alike, err error) {
	s, err := openRecords(ctx, state)
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	found, _, err := records.Memberships().List(ctx, s, "")
	if err != nil {
		return 0, nil, err
	}
	applied := map[string]bool{}
	for i := range found {
		applied[found[i].Key] = found[i].Value.State == records.Applied
	}
	ports, _, err := records.Ports().List(ctx, s, "")
	if err != nil || len(ports) == 0 {
		return 0, nil, err
	}
	like = &alike{port: ports[0].Value}
	hosts, _, err := hostrecord.Records().List(ctx, s, "")
	for i := range hosts {
		h := &hosts[i].Value
		if h.Phase != v1.PhaseAdmitted || h.Evidence == nil || h.Evidence.Judged == "" || len(h.Grants) != 1 || !applied[h.Grants[0]] {
			continue
		}
		n, like.judged = n+1, h.Evidence.Judged
	}
	return n, like, err
}

// keyOf is the grant of a host.
func (g *ground) keyOf(host int) records.Key {
	return records.Key{PKey: pkeyOf(g.tenantOf(host)), GUID: g.guid(host), Place: g.place(host)}
}

// found writes what the subnet manager would have found of a host, under the revision of its
// grant.
func (g *ground) found(tx *store.Tx, host int, like *alike, revision int64, now time.Time) error {
	key := g.keyOf(host)
	port := like.port
	port.NodeGUID, port.Place, port.Time = g.list.Nodes[g.hostAt(host)].GUID, key.Place, now
	if g.sim != nil {
		port.LID = g.sim.PortInfo(g.node(host), 1).LID
	}
	return errors.Join(
		records.Ports().Put(tx, key.GUID.String(), port),
		records.Memberships().Put(tx, key.String(), records.Membership{State: records.Applied, Revision: revision, Time: now}),
	)
}

// admit writes the records of one host.
func (g *ground) admit(tx *store.Tx, host int, c *tenancy.Cluster, judged string, now time.Time) error {
	id := hostID(host)
	c.Hosts = append(c.Hosts, id)
	digest := sha256.Sum256([]byte(id))
	ek := hex.EncodeToString(digest[:])
	node := g.list.Nodes[g.hostAt(host)].GUID
	key := g.keyOf(host)
	session := "session-of-" + id
	return errors.Join(
		inventory.Hosts().Put(tx, id, g.inventoryOf(host, ek)),
		hostrecord.Records().Put(tx, id, hostrecord.Record{
			Phase: v1.PhaseAdmitted, Since: now, Cluster: c.Name, Tenant: c.Tenant, PKey: c.PKey, Epoch: 1, Window: now,
			Evidence: &hostrecord.Evidence{Time: now, Session: session, Judged: judged}, Sealed: now, Granted: true, Admitted: true, Grants: []string{key.String()},
		}),
		hostrecord.Verdicts().Put(tx, id, attest.Verdict{OK: true, Facts: attest.Facts{
			Host: id, Session: session, EKDigest: ek,
			Statement: &attest.Statement{Host: id, HCAs: []attest.HCA{attesttest.HCA("mlx5_0", node, node, key.GUID)}},
		}}),
		records.Grants().Put(tx, key.String(), records.Grant{Host: id, Cluster: c.Name, Tenant: c.Tenant, Since: now}),
	)
}
