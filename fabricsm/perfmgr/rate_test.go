package perfmgr_test

import (
	"math"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/perfmgr"
)

// metered is a bed with one switch that has one port, whose counters grow.
type metered struct {
	*bed
	*device
	v *perfmgr.Values
}

func newMetered(t testing.TB, caps, caps2 uint32) *metered {
	t.Helper()
	b := newBed(t, nil)
	d := b.add(7, caps, caps2, 1)
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1)})
	return &metered{b, d, d.ports[1]}
}

// pass lets counters grow by what a second has, and an interval pass.
func (m *metered) pass(xmit, rcv, wait uint64) {
	m.v[perfmgr.XmitData] += 30 * xmit
	m.v[perfmgr.RcvData] += 30 * rcv
	m.v[perfmgr.XmitWait] += 30 * wait
	m.run(30 * time.Second)
}

// rate returns the rate of the port.
func (m *metered) rate() perfmgr.Rate {
	return m.m.Rates(m.now, []ib.Place{{Switch: 0x1007, Port: 1}}, nil)[0]
}

// want compares the state of a rate, and what has no meaning without a rate.
func (m *metered) want(when string, want perfmgr.RateState) perfmgr.Rate {
	m.t.Helper()
	r := m.rate()
	if r.State != want {
		m.t.Errorf("%s the rate is %v, want %v: %+v", when, r.State, want, r)
	}
	if want != perfmgr.Rated && (r.Xmit != 0 || r.Rcv != 0 || r.Span != 0) {
		m.t.Errorf("%s there is no rate, and it is %+v", when, r)
	}
	return r
}

const (
	wide  = 1<<9 | 1<<12 // 64 bits, and waits of 32
	whole = 2            // of the other mask: waits of 64 bits too
)

// Two readings make a rate in bytes a second, with the time between them and its age, for each way by itself.
func TestRates(t *testing.T) {
	t.Parallel()
	for name, caps2 := range map[string]uint32{"waits of 32 bits": 0, "waits of 64 bits": whole} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMetered(t, wide, caps2)
			m.want("before a reading", perfmgr.Unread)
			m.pass(1000, 1000, 1000)
			if r := m.want("after one reading", perfmgr.Once); r.Waits || r.Age <= 0 || r.Age > 30*time.Second {
				t.Errorf("after one reading %+v", r)
			}
			m.pass(500, 70, 9)
			r := m.want("after two", perfmgr.Rated)
			if r.Xmit != 2000 || r.Rcv != 280 || !r.Waits || r.Wait != 9 || r.Span.Round(time.Second) != 30*time.Second {
				t.Errorf("want 2000 and 280 bytes and 9 ticks a second over 30 s, got %+v", r)
			}
			first := r.Age
			m.run(5 * time.Second) // the next pass has read it
			m.run(10 * time.Second)
			if r = m.want("when nothing grew", perfmgr.Rated); r.Xmit != 0 || r.Rcv != 0 || r.Wait != 0 || r.Age >= first {
				t.Errorf("an idle port has %+v", r)
			}
			aged := r.Age
			m.run(5 * time.Second)
			if r = m.rate(); r.Age != aged+5*time.Second {
				t.Errorf("5 s later the age is %v, it was %v", r.Age, aged)
			}
		})
	}
}

// A counter that goes back makes no rate, and neither has the other way one. The reading after that does.
func TestRateAfterReset(t *testing.T) {
	t.Parallel()
	m := newMetered(t, wide, 0)
	m.pass(10, 10, 10)
	m.pass(10, 10, 10)
	m.v[perfmgr.XmitData], m.v[perfmgr.RcvData] = 0, 1<<20 // cleared, and one has grown beyond what it was
	m.run(30 * time.Second)
	m.want("after a reset", perfmgr.Restarted)
	m.pass(10, 20, 10)
	if r := m.want("after the next reading", perfmgr.Rated); r.Xmit != 40 || r.Rcv != 80 {
		t.Errorf("the rate is %+v", r)
	}
	m.v[perfmgr.SymbolErrors] = 5 // so that PortCounters go back, and the waits that they have
	m.pass(10, 20, 10)
	m.v[perfmgr.SymbolErrors] = 0
	m.pass(10, 20, 10)
	if r := m.rate(); r.Waits || r.State != perfmgr.Rated {
		t.Errorf("after a reset of PortCounters %+v", r)
	}
	m.pass(10, 20, 10)
	if r := m.rate(); !r.Waits || r.Wait != 10 {
		t.Errorf("later %+v", r)
	}
}

// A counter that wraps, stands at its largest value or grows as no link lets it has no rate.
func TestRateOfNonsense(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to uint64
		want     perfmgr.RateState
	}{
		"a wrap":            {math.MaxUint64 - 5, 100, perfmgr.Restarted},
		"more than a link":  {100, 1 << 60, perfmgr.Implausible},
		"the largest value": {math.MaxUint64 - 5, math.MaxUint64, perfmgr.Full},
	} {
		for _, which := range []perfmgr.Counter{perfmgr.XmitData, perfmgr.RcvData} {
			m := newMetered(t, wide, 0)
			m.v[which] = c.from
			m.run(30 * time.Second)
			m.v[which] = c.to
			m.run(30 * time.Second)
			m.want(name, c.want)
		}
	}
	m := newMetered(t, wide, 0)
	m.pass(10, 10, 10)
	m.v[perfmgr.XmitPkts] = 1 << 60 // what else does the device make up?
	m.pass(10, 10, 10)
	m.want("with packets of no link", perfmgr.Implausible)
	m = newMetered(t, wide, 0)
	m.v[perfmgr.XmitWait] = math.MaxUint32 - 5
	m.run(30 * time.Second)
	m.v[perfmgr.XmitWait] = math.MaxUint32
	m.run(30 * time.Second)
	if r := m.want("with full waits", perfmgr.Rated); r.Waits {
		t.Errorf("waits of 32 bits that are full have a rate: %+v", r)
	}
}

// Each answer is late by another time, and the rate is off by no more than that.
func TestRateOfLateAnswers(t *testing.T) {
	t.Parallel()
	m := newMetered(t, wide, 0)
	for i := range 6 {
		m.delay = time.Duration(i%2) * 400 * time.Millisecond
		m.pass(1_000_000, 3_000_000, 0)
		if i == 0 {
			continue
		}
		r := m.want("late", perfmgr.Rated)
		if math.Abs(float64(r.Xmit)/4e6-1) > 0.02 || math.Abs(float64(r.Rcv)/12e6-1) > 0.02 {
			t.Errorf("the rate is %+v", r)
		}
	}
}

// A device that is silent keeps its last rate with its age for three intervals, then has none. Over the silence there is no rate either.
func TestRateOfSilentDevice(t *testing.T) {
	t.Parallel()
	m := newMetered(t, wide, 0)
	m.pass(10, 10, 0)
	m.pass(10, 10, 0)
	m.silent = true
	m.run(60 * time.Second)
	if r := m.want("after two intervals", perfmgr.Rated); r.Age < 60*time.Second || r.Xmit != 40 {
		t.Errorf("after two intervals %+v", r)
	}
	m.run(31 * time.Second)
	m.want("after three intervals", perfmgr.Unread)
	m.run(10 * time.Minute)
	m.silent = false
	for m.rate().State == perfmgr.Unread {
		m.run(time.Second)
	}
	m.want("when it answers again", perfmgr.Apart)
	m.pass(10, 10, 0)
	m.want("one reading later", perfmgr.Rated)
}

// Two readings that follow each other at once, as the LID of the device changed, have no rate.
func TestRateOfNearReadings(t *testing.T) {
	t.Parallel()
	m := newMetered(t, wide, 0)
	m.pass(10, 10, 0)
	m.pass(10, 10, 0)
	m.run(5 * time.Second)
	m.devices[8] = m.device
	again := agentOf(8, 1)
	again.GUID = 0x1007
	m.v[perfmgr.XmitData] += 1 << 20
	m.m.SetAgents(m.now, []perfmgr.Agent{again})
	m.run(20 * time.Second) // the pass is over; the next one reads it
	m.pass(10, 10, 0)
	r := m.rate()
	if r.State != perfmgr.Rated {
		t.Errorf("%+v", r)
	}

	b := newMetered(t, wide, 0)
	b.devices[8] = b.device
	for i := range 4 { // during one pass: each time it is read once more
		lid := ib.LID(7 + i%2)
		is := agentOf(lid, 1)
		is.GUID = 0x1007
		b.m.SetAgents(b.now, []perfmgr.Agent{is, agentOf(99, 1)})
		b.run(100 * time.Millisecond)
	}
	b.want("after readings at once", perfmgr.Apart)
}

// A device without counters of 64 bits has no rate, also if it only turns out later; nor has a port that is not there any more.
func TestRateNeedsWideCounters(t *testing.T) {
	t.Parallel()
	m := newMetered(t, 1<<12, 0)
	m.pass(1, 1, 1)
	m.pass(1, 1, 1)
	if r := m.want("with 32 bits", perfmgr.Narrow); !r.Waits || r.Wait != 1 || r.Age <= 0 {
		t.Errorf("with 32 bits %+v", r)
	}
	m = newMetered(t, wide, 0)
	m.pass(1, 1, 1)
	m.pass(1, 1, 1)
	m.spoil = func(a *mad.MAD) {
		if a.Attr() == 0x001D {
			a.SetStatus(mad.StatusUnsupportedMethodAttr)
		}
	}
	m.run(30 * time.Second)
	m.want("once it has no such counters any more", perfmgr.Narrow)
	for _, p := range []ib.Place{{Switch: 0x1007, Port: 2}, {Switch: 0x1008, Port: 1}} {
		if r := m.m.Rates(m.now, []ib.Place{p}, nil)[0]; r != (perfmgr.Rate{}) {
			t.Errorf("%v has %+v", p, r)
		}
	}
	m.m.SetAgents(m.now, []perfmgr.Agent{agentOf(7)})
	m.want("without a link", perfmgr.Unread)
	m = newMetered(t, wide, 0)
	m.pass(1, 1, 1)
	m.pass(1, 1, 1)
	m.want("with a device", perfmgr.Rated)
	m.m.SetAgents(m.now, nil)
	m.want("without a device", perfmgr.Unread)
}

// Rates are in the order in which they are asked for, behind what is there.
func TestRatesInOrder(t *testing.T) {
	t.Parallel()
	b := newBed(t, nil)
	var of []ib.Place
	for i := range ib.LID(3) {
		b.add(7+i, wide, 0, 1)
		of = append([]ib.Place{{Switch: ib.GUID(0x1007 + uint64(i)), Port: 1}}, of...)
	}
	b.m.SetAgents(b.now, []perfmgr.Agent{agentOf(7, 1), agentOf(8, 1), agentOf(9, 1)})
	b.run(30 * time.Second)
	for i := range ib.LID(3) {
		b.devices[7+i].ports[1][perfmgr.XmitData] = 30 * uint64(i+1)
	}
	b.run(30 * time.Second)
	got := b.m.Rates(b.now, of, []perfmgr.Rate{{Wait: 5}})
	if len(got) != 4 || got[0].Wait != 5 || got[1].Xmit != 12 || got[2].Xmit != 8 || got[3].Xmit != 4 {
		t.Errorf("%+v", got)
	}
	if perfmgr.Full.String() != "full" || perfmgr.Narrow.String() != "narrow" || perfmgr.RateState(99).String() != "unknown" {
		t.Error("states have other names")
	}
}

// Waits that are not read any more have no rate, though the traffic has one.
func TestRateOfOldWaits(t *testing.T) {
	t.Parallel()
	m := newMetered(t, wide, 0)
	m.pass(1, 1, 1)
	m.pass(1, 1, 1)
	m.spoil = func(a *mad.MAD) {
		if a.Attr() == 0x0012 {
			a.SetStatus(mad.StatusInvalidField)
		}
	}
	m.pass(1, 1, 1)
	if r := m.want("without new waits", perfmgr.Rated); !r.Waits || r.Wait != 1 {
		t.Errorf("one interval later %+v", r)
	}
	for range 3 {
		m.pass(1, 1, 1)
	}
	if r := m.want("without waits", perfmgr.Rated); r.Waits || r.Wait != 0 {
		t.Errorf("four intervals later %+v", r)
	}
}

// A device that has counters of 64 bits, then others, then those again, is judged by counters of one kind alone.
func TestRateOfChangingDevice(t *testing.T) {
	t.Parallel()
	m := newMetered(t, wide, whole)
	m.v[perfmgr.XmitData], m.v[perfmgr.XmitWait], m.v[perfmgr.SymbolErrors] = 1<<40, 1<<33, 5
	m.pass(1, 1, 1)
	m.pass(1, 1, 1)
	m.want("at first", perfmgr.Rated)
	m.spoil = func(a *mad.MAD) {
		if a.Attr() == 0x001D {
			a.SetStatus(mad.StatusUnsupportedMethodAttr)
		}
	}
	m.v[perfmgr.XmitData], m.v[perfmgr.SymbolErrors] = 5, 0 // it has started again, and is asked again what it has
	m.run(30 * time.Second)
	m.want("with other counters", perfmgr.Narrow)
	m.spoil = nil
	m.v[perfmgr.XmitData] = 1 << 33 // more than the last 32 bits, less than the last 64
	m.pass(0, 1, 1)
	if r := m.want("with the first ones again", perfmgr.Restarted); r.Waits {
		t.Errorf("waits of two kinds of counters have a rate: %+v", r)
	}
	m.pass(0, 1, 1)
	if r := m.want("later", perfmgr.Rated); !r.Waits || r.Wait != 1 || r.Rcv != 4 {
		t.Errorf("later %+v", r)
	}
}
