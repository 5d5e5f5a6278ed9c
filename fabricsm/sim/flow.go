package sim

import (
	"errors"
	"fmt"
	"slices"

	"portcullis/fabricsm/ib"
)

// FlowOptions change the packets of a Flow.
type FlowOptions struct {
	SL      ib.SL
	Payload int // bytes of each packet, 256 by default
	PerTick int // packets of each Advance, 1 by default

	// EachSet also sends a packet after each Set that an agent accepted. So the flow also detects states that exist only
	// between two writes of a subnet manager.
	EachSet bool
}

// Flow is data traffic from one port to another, such as a connection between two hosts of a tenant. With it a test
// measures the effect on a victim. It continues until Stop.
type Flow struct {
	fabric   *Fabric
	from, to *port
	data     Data
	options  FlowOptions
	counts   FlowCounts
}

// FlowCounts counts the packets of a flow.
type FlowCounts struct {
	Sent      uint64
	Delivered uint64 // to the port they were meant for
	Strayed   uint64 // to another: an impostor
	Lost      uint64
	Last      Report // of the last packet that was not delivered
}

var errNoLID = errors.New("has no LID yet")

// Flow starts traffic from one end port to another with a P_Key. As with a connection, the LIDs of the ports at the start
// are used.
func (f *Fabric) Flow(from, to Endpoint, key ib.PKey, o FlowOptions) (*Flow, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o.Payload == 0 {
		o.Payload = 256
	}
	if o.PerTick == 0 {
		o.PerTick = 1
	}
	w := &Flow{fabric: f, options: o}
	for _, end := range []struct {
		at   Endpoint
		port **port
	}{{from, &w.from}, {to, &w.to}} {
		p, err := f.findPort(end.at.Node, end.at.Port)
		if err == nil && !p.isEnd() {
			err = fmt.Errorf("port %d of %q is a port of a switch: name a CA's, or port 0", p.num, p.node.name)
		}
		if err != nil {
			return nil, fmt.Errorf("start flow: %w", err)
		}
		*end.port = p
	}
	w.data = Data{SL: o.SL, PKey: key, DestQP: 2, Payload: o.Payload}
	if err := w.connect(); err != nil {
		return nil, fmt.Errorf("start flow: %w", err)
	}
	f.flows = append(f.flows, w)
	return w, nil
}

// connect takes the LIDs that the ports have now.
func (w *Flow) connect() error {
	for _, p := range []*port{w.from, w.to} {
		if p.info.LID == 0 {
			return fmt.Errorf("port %d of %q %w: let a subnet manager bring the fabric up first", p.num, p.node.name, errNoLID)
		}
	}
	w.data.SLID, w.data.DLID = w.from.info.LID, w.to.info.LID
	return nil
}

// Send sends the given number of packets now.
func (w *Flow) Send(packets int) {
	f := w.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	w.send(packets)
	f.run()
	f.settle()
}

// send is called with mu held.
func (w *Flow) send(packets int) {
	for range packets {
		w.counts.Sent++
		fate, at := w.fabric.carry(w.from, &w.data)
		switch {
		case fate == Delivered && at == w.to:
			w.counts.Delivered++
			continue
		case fate == Delivered:
			w.counts.Strayed++
		default:
			w.counts.Lost++
		}
		w.counts.Last = Report{Fate: fate, At: at.endpoint()}
	}
}

// Counts returns the results of the flow's packets so far.
func (w *Flow) Counts() FlowCounts {
	w.fabric.mu.Lock()
	defer w.fabric.mu.Unlock()
	return w.counts
}

// Stop ends the flow. It is idempotent.
func (w *Flow) Stop() {
	w.fabric.mu.Lock()
	defer w.fabric.mu.Unlock()
	w.fabric.flows = slices.DeleteFunc(w.fabric.flows, func(o *Flow) bool { return o == w })
}

// tickFlows sends the packets of flows and floods in one Advance.
func (f *network) tickFlows() {
	for _, w := range f.flows {
		w.send(w.options.PerTick)
	}
	for _, fl := range f.floods {
		fl.send()
	}
	f.run()
}

// probeFlows sends the packets of flows after a Set.
func (f *network) probeFlows() {
	for _, w := range f.flows {
		if w.options.EachSet {
			w.send(1)
		}
	}
}
