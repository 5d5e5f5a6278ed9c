package main

import (
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
)

const (
	// streamsPerRail is how many streams a cluster has on each rail.
	streamsPerRail = 25
	// steadyPackets is how many packets a stream must deliver in a row to count as restored.
	steadyPackets = 5
)

// stream is data traffic between two ports of one cluster, or from one cluster to another,
// which must deliver nothing.
type stream struct {
	name    string
	flow    *sim.Flow
	from    *hca
	to      *hca
	foreign bool // the ends are in different clusters

	path    []sim.Endpoint // at the beginning of the fault
	before  sim.FlowCounts // at the beginning of the fault
	excused bool           // the fault cut its path
	other   bool           // the fault left another path
}

// startStreams starts traffic between hosts that stay in their cluster, on both rails, and
// between clusters.
func (s *site) startStreams(steady []*machine) (all []*stream, err error) {
	members := map[string][]*machine{}
	for _, m := range steady {
		members[m.assigned()] = append(members[m.assigned()], m)
	}
	for c, name := range clusterNames {
		in := members[name]
		if len(in) < 2 {
			return nil, fmt.Errorf("cluster %s has %d hosts that stay: want 2 or more", name, len(in))
		}
		foreign := members[clusterNames[(c+1)%len(clusterNames)]]
		for r := range rails {
			// From one half to the other, so that most streams cross a spine.
			for i := range min(streamsPerRail, len(in)/2) {
				w, err := s.startStream(in[i], in[i+len(in)/2], r, name, false)
				if err != nil {
					return nil, err
				}
				all = append(all, w)
			}
			w, err := s.startStream(in[0], foreign[0], r, name, true)
			if err != nil {
				return nil, err
			}
			all = append(all, w)
		}
	}
	return all, nil
}

func (s *site) startStream(from, to *machine, rail int, cluster string, foreign bool) (*stream, error) {
	w := &stream{from: &from.hcas[rail], to: &to.hcas[rail], foreign: foreign}
	w.name = fmt.Sprintf("%s to %s with the P_Key of %s", w.from.node, w.to.node, cluster)
	var err error
	w.flow, err = s.fabric.Flow(w.from.end(), w.to.end(), s.keys[cluster].Full(), sim.FlowOptions{})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	return w, nil
}

// cut is what a fault takes out of the fabric: ports, and nodes where the port is 0.
type cut map[sim.Endpoint]bool

func (c cut) hits(e sim.Endpoint) bool { return c[e] || c[sim.Endpoint{Node: e.Node}] }

// mark remembers the path of each stream and what it has delivered, and excuses the streams
// that the fault cuts.
func (s *site) mark(streams []*stream, c cut) error {
	for _, w := range streams {
		var err error
		from, to := s.fabric.PortInfo(w.from.node, 1).LID, s.fabric.PortInfo(w.to.node, 1).LID
		if w.path, err = s.fabric.Route(from, to); err != nil && !w.foreign {
			return fmt.Errorf("%s has no path before the fault: %w", w.name, err)
		}
		w.before, w.excused = w.flow.Counts(), c.hits(w.from.end()) || c.hits(w.to.end())
		for _, at := range w.path {
			w.excused = w.excused || c.hits(at)
		}
		w.other = w.excused && !w.foreign && s.plan.connected(c, w.from.node, w.to.node)
	}
	return nil
}

// rerouted returns the streams that a fault cut and that have another path.
func rerouted(streams []*stream) (out []*stream) {
	for _, w := range streams {
		if w.other {
			out = append(out, w)
		}
	}
	return out
}

// lost returns an error for the first stream that lost a packet without an excuse, or that
// delivered a packet to another cluster.
func lost(streams []*stream) error {
	for _, w := range streams {
		n := w.flow.Counts()
		switch gone := n.Lost + n.Strayed - w.before.Lost - w.before.Strayed; {
		case w.foreign && n.Delivered > 0:
			return fmt.Errorf("ISOLATION: %s delivered %d packets", w.name, n.Delivered)
		case !w.foreign && !w.excused && gone > 0:
			return fmt.Errorf("AVAILABILITY: %s lost %d of %d packets, the last at %s port %d: %v; nothing on its path was cut",
				w.name, gone, n.Sent-w.before.Sent, n.Last.At.Node, n.Last.At.Port, n.Last.Fate)
		}
	}
	return nil
}

// restored reports whether every stream has delivered packets in a row since the counts of
// the last call, which it replaces. The name is that of the first that has not.
func restored(streams []*stream, last []sim.FlowCounts) (bool, string) {
	for i, w := range streams {
		if w.foreign {
			continue
		}
		n := w.flow.Counts()
		if n.Lost+n.Strayed > last[i].Lost+last[i].Strayed {
			last[i] = n
		}
		if n.Delivered < last[i].Delivered+steadyPackets {
			return false, fmt.Sprintf("%s does not deliver: the last packet that was lost, at %s port %d: %v", w.name, n.Last.At.Node, n.Last.At.Port, n.Last.Fate)
		}
	}
	return true, ""
}

func counts(streams []*stream) []sim.FlowCounts {
	out := make([]sim.FlowCounts, len(streams))
	for i, w := range streams {
		out[i] = w.flow.Counts()
	}
	return out
}

// watchTables returns an error for the first port that holds the P_Key of a tenant without
// an admission, in the adapter or at the switch port.
func (s *site) watchTables() error {
	clusters := make(map[ib.PKey]string, len(s.keys))
	for name, key := range s.keys {
		clusters[key.Base()] = name
	}
	for _, m := range s.hosts {
		for i := range m.hcas {
			for _, at := range []sim.Endpoint{m.hcas[i].end(), m.hcas[i].gate()} {
				if err := s.watchTable(m, at, clusters); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// watchTable judges one table. The P_Keys that a host may hold can change while it is read, so that a P_Key is wrong only
// if it was forbidden before and after.
func (s *site) watchTable(m *machine, at sim.Endpoint, clusters map[ib.PKey]string) error {
	before, frozen := m.holds(), s.frozen.Load()
	for _, key := range s.fabric.PKeys(at.Node, at.Port) {
		cluster := clusters[key.Base()]
		if cluster != "" && frozen != nil && frozen == s.frozen.Load() && !(*frozen)[at][key] {
			return fmt.Errorf("REVIEW: %s port %d got %v of %s before the review of the state has ended", at.Node, at.Port, key, cluster)
		}
		if cluster != "" && !before[cluster] && !m.may(cluster) {
			return fmt.Errorf("ISOLATION: %s port %d holds %v of %s, and %s is not admitted there", at.Node, at.Port, key, cluster, m.id)
		}
	}
	return nil
}
