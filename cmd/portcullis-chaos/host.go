package main

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"portcullis/api/client"
	"portcullis/attest/attesttest"
	"portcullis/cmd/internal/softagent"
)

// machine is a host of the site: a TPM in software, and the truth of which P_Keys its ports
// may hold now.
type machine struct {
	planned
	tpm *attesttest.Host

	mu      sync.Mutex
	allowed map[string]bool // clusters whose P_Key its ports may hold
	cluster string          // as the service acknowledged last
	busy    bool            // a command is out
	moves   int             // commands so far
}

// newMachine makes a host with the adapters of the plan.
func newMachine(v *attesttest.Vendor, p planned, number int) (*machine, error) {
	h, err := v.NewHost(p.id, number)
	if err != nil {
		return nil, err
	}
	h.Statement.HCAs = nil
	for i, a := range p.hcas {
		h.Statement.HCAs = append(h.Statement.HCAs, attesttest.HCA(fmt.Sprintf("mlx5_%d", i), a.guid, a.guid, a.port))
	}
	return &machine{planned: p, tpm: h, allowed: map[string]bool{}}, nil
}

// allow says that the ports may hold the P_Key of a cluster from now on.
func (m *machine) allow(cluster string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.allowed[cluster] = true
}

// forbid notes that the service has reported that no port holds a tenant's P_Key any longer.
func (m *machine) forbid() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.allowed)
}

// only says that the ports may hold the P_Key of one cluster alone, as the service
// acknowledged; "": none.
func (m *machine) only(cluster string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.allowed)
	if m.cluster = cluster; cluster != "" {
		m.allowed[cluster] = true
	}
	m.moves++
}

// acknowledged writes down what the service acknowledged: the cluster, "" after a release.
func (m *machine) acknowledged(cluster string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cluster = cluster
}

func (m *machine) assigned() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cluster
}

// begin and end enclose a command, which may take effect before it is acknowledged.
func (m *machine) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy, m.moves = true, m.moves+1
}

func (m *machine) end() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.busy = false
}

// standing returns whether a command is out, how many there were, and what was acknowledged.
func (m *machine) standing() standing {
	m.mu.Lock()
	defer m.mu.Unlock()
	return standing{m.busy, m.moves, m.cluster}
}

// holds returns the clusters whose P_Key the ports may hold.
func (m *machine) holds() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.allowed)
}

func (m *machine) may(cluster string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.allowed[cluster]
}

// attest boots the host and attests it once to a service: evidence and hand-over.
func (m *machine) attest(ctx context.Context, c *client.Client) error {
	return softagent.Attest(ctx, c, m.tpm)
}
