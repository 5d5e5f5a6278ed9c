package perfmgr_test

import (
	"encoding/binary"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/perfmgr"
)

// device answers at a LID, as it is set.
type device struct {
	caps, caps2 uint32
	ports       map[ib.PortNum]*perfmgr.Values
	silent      bool
	delay       time.Duration
	asked       int

	spoil func(*mad.MAD) // changes an answer
}

// bed is a Manager with devices, in virtual time.
type bed struct {
	t       testing.TB
	m       *perfmgr.Manager
	now     time.Time
	devices map[ib.LID]*device
	sent    []time.Time
	flying  []flying
	most    int // requests that were out at once
}

type flying struct {
	at   time.Time
	from ib.LID
	mad  mad.MAD
}

func newBed(t testing.TB, change func(*perfmgr.Options)) *bed {
	t.Helper()
	next := uint32(0x9E3779B9)
	o := perfmgr.Options{Interval: 30 * time.Second, Rate: 1000, Window: 8, Timeout: 500 * time.Millisecond, Draw: func() uint32 { next = next*1664525 + 1013904223; return next }}
	if change != nil {
		change(&o)
	}
	m, err := perfmgr.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return &bed{t: t, m: m, now: time.Unix(1_000_000, 0), devices: map[ib.LID]*device{}}
}

// add makes a device with ports.
func (b *bed) add(lid ib.LID, caps, caps2 uint32, ports ...ib.PortNum) *device {
	d := &device{caps: caps, caps2: caps2, ports: map[ib.PortNum]*perfmgr.Values{}}
	for _, p := range ports {
		d.ports[p] = &perfmgr.Values{}
	}
	b.devices[lid] = d
	return d
}

// agentOf is a switch at a LID.
func agentOf(lid ib.LID, ports ...ib.PortNum) perfmgr.Agent {
	return perfmgr.Agent{GUID: ib.GUID(0x1000 + uint64(lid)), LID: lid, Ports: ports}
}

// run lets time pass, up to a moment before its end.
func (b *bed) run(d time.Duration) {
	b.t.Helper()
	end := b.now.Add(d)
	for steps := 0; b.now.Before(end); steps++ {
		if steps > 10_000_000 {
			b.t.Fatal("time stands still")
		}
		for len(b.flying) > 0 && !b.flying[0].at.After(b.now) {
			f := b.flying[0]
			b.flying = b.flying[1:]
			b.m.Answer(b.now, f.from, &f.mad)
		}
		b.m.Expire(b.now)
		var m mad.MAD
		for {
			lid, ok := b.m.Next(b.now, &m)
			if !ok {
				break
			}
			b.sent = append(b.sent, b.now)
			b.reply(lid, &m)
		}
		b.most = max(b.most, len(b.flying))
		wake := b.m.Wake()
		if len(b.flying) > 0 && b.flying[0].at.Before(wake) {
			wake = b.flying[0].at
		}
		if !wake.After(b.now) {
			wake = b.now.Add(time.Microsecond)
		}
		b.now = wake
	}
	b.now = end
}

// reply has the device at a LID answer.
func (b *bed) reply(lid ib.LID, m *mad.MAD) {
	d := b.devices[lid]
	if d == nil {
		return
	}
	d.asked++
	if d.silent {
		return
	}
	m.Respond(d.answer(m))
	if d.spoil != nil {
		d.spoil(m)
	}
	at := b.now.Add(100*time.Microsecond + d.delay)
	i := len(b.flying)
	for i > 0 && b.flying[i-1].at.After(at) {
		i--
	}
	b.flying = append(b.flying, flying{})
	copy(b.flying[i+1:], b.flying[i:])
	b.flying[i] = flying{at, lid, *m}
}

// answer writes what is asked; it encodes by itself, for the codec is judged too.
func (d *device) answer(m *mad.MAD) mad.Status {
	p, num := m[64:], ib.PortNum(m[65])
	if m.Class() != mad.ClassPerf || m.Method() != mad.MethodGet || m[2] != 1 {
		return mad.StatusUnsupportedMethodAttr
	}
	if m.Attr() == mad.AttrClassPortInfo {
		p[0], p[1] = 1, 1
		binary.BigEndian.PutUint16(p[2:], uint16(d.caps))
		binary.BigEndian.PutUint32(p[4:], d.caps2<<5|8)
		return mad.StatusOK
	}
	v := d.ports[num]
	switch {
	case v == nil:
		return mad.StatusInvalidField
	case m.Attr() == 0x0012:
		least := func(c perfmgr.Counter, most uint64) uint64 { return min(v[c], most) }
		for at, c := range map[int]perfmgr.Counter{
			4: perfmgr.SymbolErrors, 8: perfmgr.RcvErrors, 10: perfmgr.RcvRemotePhysicalErrors, 12: perfmgr.RcvSwitchRelayErrors,
			14: perfmgr.XmitDiscards, 20: perfmgr.QP1Dropped, 22: perfmgr.VL15Dropped,
		} {
			binary.BigEndian.PutUint16(p[at:], uint16(least(c, 0xFFFF)))
		}
		for at, c := range map[int]perfmgr.Counter{
			6: perfmgr.LinkErrorRecovery, 7: perfmgr.LinkDowned, 16: perfmgr.XmitConstraintErrors, 17: perfmgr.RcvConstraintErrors,
		} {
			p[at] = byte(least(c, 0xFF))
		}
		p[19] = byte(least(perfmgr.LocalLinkIntegrityErrors, 15)<<4 | least(perfmgr.ExcessiveBufferOverrunErrors, 15))
		for at, c := range map[int]perfmgr.Counter{
			24: perfmgr.XmitData, 28: perfmgr.RcvData, 32: perfmgr.XmitPkts, 36: perfmgr.RcvPkts, 40: perfmgr.XmitWait,
		} {
			binary.BigEndian.PutUint32(p[at:], uint32(least(c, 0xFFFFFFFF)))
		}
	case m.Attr() == 0x001D && d.caps&(1<<9|1<<10) != 0:
		last := perfmgr.RcvPkts
		if d.caps&(1<<9) != 0 {
			last = perfmgr.MulticastRcvPkts
		}
		if d.caps2&2 != 0 {
			last = perfmgr.QP1Dropped
		}
		for c := perfmgr.XmitData; c <= last; c++ {
			if c > perfmgr.RcvPkts && c <= perfmgr.MulticastRcvPkts && d.caps&(1<<9) == 0 {
				continue
			}
			binary.BigEndian.PutUint64(p[8+8*int(c):], v[c])
		}
	default:
		return mad.StatusUnsupportedMethodAttr
	}
	return mad.StatusOK
}

// of returns the totals of a port.
func (b *bed) of(guid ib.GUID, num ib.PortNum) (perfmgr.Reading, bool) {
	for _, r := range b.m.Append(b.now, nil) {
		if r.GUID == guid && r.Port == num {
			return r, true
		}
	}
	return perfmgr.Reading{}, false
}

func (b *bed) must(guid ib.GUID, num ib.PortNum) perfmgr.Reading {
	b.t.Helper()
	r, ok := b.of(guid, num)
	if !ok {
		b.t.Fatalf("%v port %d was not read; %+v", guid, num, b.m.Stats())
	}
	return r
}
