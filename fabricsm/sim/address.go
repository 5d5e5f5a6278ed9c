package sim

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/transport"
)

// Addresses of MADs beside LID and queue pair. A station names its own P_Key and GID
// by their places in the tables of its port, as programs do, unless UsePKey or UseGID
// make it a modified driver.

// UsePKey sets the P_Key of the GMPs that the station sends, independent of their index. It may be another entry of the
// table, or one that the port does not have, as only a modified driver can use. 0, the default, uses the index.
func (s *Station) UsePKey(k ib.PKey) {
	s.fabric.mu.Lock()
	defer s.fabric.mu.Unlock()
	s.pkey = k
}

// UseGID sets the source GID of the global route headers that the station sends; it may belong to another port. The zero
// GID, the default, uses the GID that the headers name.
func (s *Station) UseGID(g ib.GID) {
	s.fabric.mu.Lock()
	defer s.fabric.mu.Unlock()
	s.gid = g
}

// address sets the addresses of a GMP at the start of a flight.
func (s *Station) address(fl *flight, p *transport.Packet) {
	at := s.at.endPort()
	fl.sl = p.SL
	if fl.slid != ib.PermissiveLID {
		fl.slid += ib.LID(p.PathBits & (1<<at.info.LMC - 1))
	}
	if p.MAD.IsSMP() {
		return
	}
	if fl.key = s.pkey; fl.key == 0 {
		fl.key = at.pkeys.at(p.PKeyIndex)
	}
	if g := &p.GRH; g.Present {
		fl.grh = &GRH{DGID: g.GID, SGID: s.gid, HopLimit: g.HopLimit, TrafficClass: g.TrafficClass, FlowLabel: g.FlowLabel & flowLabels}
		if s.gid == (ib.GID{}) {
			fl.grh.SGID = at.guids.gid(at.info.GIDPrefix, g.GIDIndex)
		}
	}
}

const flowLabels = 1<<20 - 1

// unpack makes the packet that a station at a port gets of a flight.
func (fl *flight) unpack(p *transport.Packet, at *port) {
	at = at.endPort()
	p.MAD, p.LID, p.QP, p.SL = fl.mad, fl.slid, fl.sqp, fl.sl
	if at.owns(fl.dlid) {
		p.PathBits = uint8(fl.dlid - at.info.LID)
	}
	if fl.mad.IsSMP() {
		return
	}
	p.PKeyIndex = at.pkeys.index(fl.key)
	if g := fl.grh; g != nil {
		index, _ := at.guids.index(at.info.GIDPrefix, g.DGID)
		p.GRH = transport.GRH{
			Present: true, GIDIndex: index, HopLimit: g.HopLimit, TrafficClass: g.TrafficClass, FlowLabel: g.FlowLabel, GID: g.SGID,
		}
	}
}

// reverse makes the global route header of the answer.
func (g *GRH) reverse() *GRH {
	if g == nil {
		return nil
	}
	r := *g
	r.SGID, r.DGID = g.DGID, g.SGID
	return &r
}

// misses reports whether a GMP at an end port has a global route header for another port. A router forwards such a GMP.
func (p *port) misses(fl *flight) bool {
	if fl.grh == nil {
		return false
	}
	_, ok := p.guids.index(p.info.GIDPrefix, fl.grh.DGID)
	return !ok
}

// passOn sends a GMP that came to a port of a router on to the subnet it is for, or
// drops it.
func (f *network) passOn(fl *flight, at *port) {
	d := Data{SLID: fl.slid, DLID: fl.dlid, SL: fl.sl, PKey: fl.key, GRH: fl.grh}
	if !at.routesOn(&d) {
		at.counters.Discard()
		f.undelivered(fl)
		return
	}
	next, out, fate := at.routeOn(&d)
	if fate != Delivered {
		f.undelivered(fl)
		return
	}
	fl.slid, fl.dlid, fl.grh, fl.from = next.SLID, next.DLID, next.GRH, out
	f.routeByLID(fl)
}
