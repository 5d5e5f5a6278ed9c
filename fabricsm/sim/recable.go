package sim

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim/netlist"
)

// plug puts a cable between two free ports and trains the link.
func plug(p, far *port) error {
	for _, end := range []*port{p, far} {
		if end.cable != nil || end.num == 0 || p == far {
			return fmt.Errorf("port %d of %q cannot take the cable: it has one, or cannot have any", end.num, end.node.name)
		}
	}
	p.cable, far.cable = far, p
	if p.train() {
		p.noteLinkChange()
		far.noteLinkChange()
	}
	return nil
}

// unplug pulls the cable out of a port, if there is one, and takes the link
// down.
func (p *port) unplug() {
	far := p.cable
	if far == nil {
		return
	}
	p.cable, far.cable = nil, nil
	p.was, far.was = far, p
	if p.drop() {
		p.noteLinkChange()
		far.noteLinkChange()
	}
}

// Recable connects two ports with a cable. Cables that were in these ports are pulled out; ports at the far ends of those
// cables stay empty.
func (f *Fabric) Recable(a, b Endpoint) error {
	return f.change("recable", func() error {
		p, far, err := f.twoPorts(a, b)
		if err != nil {
			return err
		}
		p.unplug()
		far.unplug()
		return plug(p, far)
	})
}

// Swap exchanges the cables at two ports, as hands do that plug two cables into
// each other's places.
func (f *Fabric) Swap(a, b Endpoint) error {
	return f.change("swap", func() error {
		p, q, err := f.twoPorts(a, b)
		if err != nil {
			return err
		}
		atP, atQ := p.cable, q.cable
		switch {
		case atP == nil || atQ == nil:
			return errors.New("both ports need a cable")
		case atP == q:
			return errors.New("one cable joins the two ports")
		}
		p.unplug()
		q.unplug()
		return errors.Join(plug(p, atQ), plug(q, atP))
	})
}

func (f *network) twoPorts(a, b Endpoint) (*port, *port, error) {
	p, err := f.findPort(a.Node, a.Port)
	if err != nil {
		return nil, nil, err
	}
	q, err := f.findPort(b.Node, b.Port)
	if err != nil {
		return nil, nil, err
	}
	if p == q || p.num == 0 || q.num == 0 {
		return nil, nil, fmt.Errorf("port %d of %q and port %d of %q: want two ports that have connectors", p.num, p.node.name, q.num, q.node.name)
	}
	return p, q, nil
}

// Bounce takes the link at a port down and up again, as a loose cable does.
func (f *Fabric) Bounce(node string, num ib.PortNum) error {
	return f.change("bounce", func() error {
		p, err := f.findPort(node, num)
		if err != nil {
			return err
		}
		far := p.peer
		if far == nil {
			return fmt.Errorf("port %d of %q has no link", num, p.node.name)
		}
		p.drop()
		p.noteLinkChange()
		far.noteLinkChange()
		if p.train() {
			p.noteLinkChange()
			far.noteLinkChange()
		}
		return nil
	})
}

// Unplug pulls every cable out of a node.
func (f *Fabric) Unplug(node string) error {
	return f.change("unplug", func() error {
		n, err := f.find(node)
		if err != nil {
			return err
		}
		for _, p := range n.ports {
			if p != nil {
				p.unplug()
			}
		}
		return nil
	})
}

// Restore plugs the last cable back in that was pulled out of a port, or with
// port ib.NoPort of each port of the node that has none now. Where a far end has
// another cable by now, that is pulled out.
func (f *Fabric) Restore(node string, num ib.PortNum) error {
	return f.change("restore", func() error {
		n, err := f.find(node)
		if err != nil {
			return err
		}
		restored := 0
		for _, p := range n.ports {
			if p == nil || p.was == nil || p.cable != nil || num != ib.NoPort && num != p.num {
				continue
			}
			far := p.was
			far.unplug()
			if err := plug(p, far); err != nil {
				return err
			}
			restored++
		}
		if restored == 0 {
			return fmt.Errorf("no cable was pulled out of %q there, or another is in its place", n.name)
		}
		return nil
	})
}

// Insert brings a new node into the running fabric, with the cables that it
// names: each must end at a free port. It is switched on, and its links train.
// GUIDs may repeat those of other nodes; its name may not.
func (f *Fabric) Insert(l netlist.Node) error {
	return f.change("insert", func() error {
		if len(l.Ports) < 2 || len(l.Ports) > 255 {
			return fmt.Errorf("node %q has %d ports, want 1 to 254", l.Name, len(l.Ports)-1)
		}
		if _, taken := f.byName[l.Name]; taken || l.Name == "" {
			return fmt.Errorf("node %q: the fabric has one of that name, or it is empty", l.Name)
		}
		far := make([]*port, len(l.Ports))
		for num := 1; num < len(l.Ports); num++ {
			cable := &l.Ports[num]
			if cable.Peer == "" {
				continue
			}
			at, err := f.findPort(cable.Peer, cable.PeerPort)
			if err == nil && (at.cable != nil || at.num == 0) {
				err = fmt.Errorf("port %d of %q has a cable, or cannot have any", at.num, at.node.name)
			}
			if err != nil {
				return fmt.Errorf("node %q: port %d: %w", l.Name, num, err)
			}
			far[num] = at
		}
		n := f.newNode(&l)
		f.nodes = append(f.nodes, n)
		f.byName[n.name] = n
		n.reset(&l)
		for num, at := range far {
			if at == nil {
				continue
			}
			if err := plug(n.ports[num], at); err != nil {
				return err
			}
		}
		return nil
	})
}

// SetLID sets LID and LMC of an end port, as it would have them from another fabric: no trap reports it.
func (f *Fabric) SetLID(node string, num ib.PortNum, lid ib.LID, lmc ib.LMC) error {
	return f.change("set LID", func() error {
		p, err := f.findPort(node, num)
		if err != nil {
			return err
		}
		if !p.isEnd() {
			return fmt.Errorf("port %d of %q has no LID of its own", num, p.node.name)
		}
		if lmc > 7 || lid != 0 && (!lid.IsUnicast() || int(lid)+1<<lmc-1 > int(ib.MaxUnicastLID)) {
			return fmt.Errorf("LID %v with LMC %d is not unicast", lid, lmc)
		}
		p.info.LID, p.info.LMC = lid, lmc
		p.commit()
		return nil
	})
}

// Cable shows where the cable at a port ends; false means that there is none.
func (f *Fabric) Cable(node string, num ib.PortNum) (Endpoint, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.findPort(node, num)
	if err != nil || p.cable == nil {
		return Endpoint{}, false
	}
	return p.cable.endpoint(), true
}

// Nodes lists the names of the nodes in the order of the netlist, inserted ones
// behind.
func (f *Fabric) Nodes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := make([]string, len(f.nodes))
	for i, n := range f.nodes {
		names[i] = n.name
	}
	return names
}
