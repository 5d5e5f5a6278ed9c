package perfmgr

import (
	"math"
	"slices"
	"time"

	"portcullis/fabricsm/ib"
)

// RateState says whether there is a rate, and if not, why.
type RateState uint8

// States of a rate. All but Rated mean that it is not known.
const (
	Unread      RateState = iota // the port was not read lately
	Once                         // it was read once
	Rated                        // the rate is known
	Restarted                    // a counter went back between the two readings
	Implausible                  // a counter grew by more than any link carries
	Full                         // a counter is at its largest value
	Apart                        // the two readings are too near to each other, or too far apart
	Narrow                       // the device has no counters of 64 bits
)

var rateStates = [...]string{"unread", "once", "known", "restarted", "implausible", "full", "apart", "narrow"}

// String returns the name.
func (s RateState) String() string {
	if int(s) < len(rateStates) {
		return rateStates[s]
	}
	return "unknown"
}

// Rate is what a port carried in a second, on average from its last but one reading to its last.
type Rate struct {
	State     RateState // of Xmit and Rcv
	Xmit, Rcv uint64    // bytes in a second
	Span      time.Duration
	Age       time.Duration // of the last reading; 0 if State is Unread

	Waits bool   // Wait is known
	Wait  uint64 // ticks in a second in which there was data to send and no credit. How long a tick is depends on the device
}

// meter has the rates of a port, as of its last reading.
type meter struct {
	xmit, rcv, wait flow
	span            time.Duration
	data, waits     RateState
	waitBy          attribute // that has the counter of waits
}

// flow is a counter, and its rate in units a second.
type flow struct{ last, rate uint64 }

// spans are how long it takes from one reading to the next. Others have no rate: over a short time the delay of answers
// weighs too much, and the mean of a long time does not say what is now.
type spans struct{ least, most time.Duration }

func (m *Manager) spans() spans {
	return spans{max(m.Interval/4, time.Millisecond), m.stale()}
}

// meter takes what was read, before the time of the reading is noted.
func (p *port) meter(a attribute, v *Values, of Set, n news, now time.Time, s spans) {
	r := &p.rates
	span := now.Sub(p.read[a])
	judged := Rated
	switch {
	case p.read[a].IsZero():
		judged = Once
	case n.reset:
		judged = Restarted
	case n.nonsense:
		judged = Implausible
	case span < s.least || span > s.most:
		judged = Apart
	}
	if a == long {
		r.data, r.span = judged, span
		r.xmit.take(v[XmitData], math.MaxUint64, wordBytes, span, &r.data)
		r.rcv.take(v[RcvData], math.MaxUint64, wordBytes, span, &r.data)
	} else if of.Has(XmitData) {
		r.data = Narrow
	}
	if of.Has(XmitWait) {
		most := uint64(math.MaxUint64)
		if a == short {
			most = 1<<widths[XmitWait] - 1
		}
		if r.waits != Unread && r.waitBy != a {
			judged = Once
		}
		r.waits, r.waitBy = judged, a
		r.wait.take(v[XmitWait], most, 1, span, &r.waits)
	}
}

// take takes the value of a counter. largest is its largest one, and unit what one of it is.
func (f *flow) take(v, largest, unit uint64, span time.Duration, state *RateState) {
	switch {
	case *state != Rated:
	case v < f.last:
		*state = Restarted
	case v == largest:
		*state = Full
	default:
		f.rate = uint64(math.Round(float64(v-f.last) * float64(unit) / span.Seconds()))
	}
	f.last = v
}

// wordBytes is the unit of the counters of data.
const wordBytes = 4

// rate returns the rate of a port as it is known now.
func (p *port) rate(now, oldest time.Time) (r Rate) {
	m := &p.rates
	at := p.read[long]
	if m.data == Narrow {
		at = p.read[short]
	}
	if !at.After(oldest) {
		return Rate{}
	}
	r = Rate{State: m.data, Age: max(0, now.Sub(at))}
	if m.data == Rated {
		r.Xmit, r.Rcv, r.Span = m.xmit.rate, m.rcv.rate, m.span
	}
	if m.waits == Rated && p.read[m.waitBy].After(oldest) {
		r.Waits, r.Wait = true, m.wait.rate
	}
	return r
}

// Rates appends the rates of ports of switches, in the order of the ports.
func (m *Manager) Rates(now time.Time, of []ib.Place, to []Rate) []Rate {
	oldest := now.Add(-m.stale())
	to = slices.Grow(to, len(of))
	for _, pl := range of {
		to = append(to, m.rate(pl, now, oldest))
	}
	return to
}

func (m *Manager) rate(of ib.Place, now, oldest time.Time) Rate {
	a := m.known[key{guid: of.Switch}]
	if a == nil || !a.listed {
		return Rate{}
	}
	i, ok := a.find(of.Port)
	if !ok || !a.ports[i].listed {
		return Rate{}
	}
	return a.ports[i].rate(now, oldest)
}
