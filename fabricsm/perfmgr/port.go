package perfmgr

import (
	"math"
	"math/bits"
	"time"

	"portcullis/fabricsm/ib"
)

// mostPerSecond is by how much no counter of a port grows in a second: 2^38 words are 8.8 Tbit/s.
const mostPerSecond = 1 << 38

// longAgo is the time after which a counter may say anything; mostPerSecond over it is less than 2^64.
const longAgo = 1 << 25 * time.Second

// port is a port of an agent.
type port struct {
	num    ib.PortNum
	listed bool // it has a link
	has    Set  // counters that were read once
	full   Set  // those that are at their largest value
	raw    Values
	total  Values
	read   [2]time.Time // when the attributes were read: short, long; zero: never
	rates  meter
}

// attribute of a port, as an index of port.read.
type attribute uint8

const (
	short attribute = iota
	long
)

// news is what an answer has brought beside values.
type news struct {
	reset     bool // a counter went back
	nonsense  bool // a counter grew by more than can be
	saturated Set  // of the counters that were read
}

// take adds what was counted since the last answer to the totals. A counter that went back was cleared in between: it has counted
// what it says since. The first value of a counter is its total.
func (p *port) take(a attribute, values *Values, of Set, now time.Time, s spans) (n news) {
	most := p.most(a, now)
	for rest := of; rest != 0; rest &= rest - 1 {
		c := Counter(bits.TrailingZeros32(uint32(rest)))
		v := values[c]
		switch {
		case !p.has.Has(c):
			p.total[c] = v
		default:
			grown := v
			if v < p.raw[c] {
				n.reset = true
			} else {
				grown -= p.raw[c]
			}
			if grown > most {
				n.nonsense = true
				break
			}
			p.total[c] += min(grown, math.MaxUint64-p.total[c])
		}
		p.raw[c] = v
		if a == short && v == 1<<widths[c]-1 {
			n.saturated |= 1 << c
		}
	}
	p.meter(a, values, of, n, now, s)
	p.has |= of
	p.full = p.full&^of | n.saturated
	p.read[a] = now
	return n
}

// most returns by how much a counter can have grown since it was read.
func (p *port) most(a attribute, now time.Time) uint64 {
	past := max(0, now.Sub(p.read[a]))
	if past >= longAgo { // or it was never read
		return math.MaxUint64
	}
	return (uint64(past/time.Second) + 1) * mostPerSecond
}

// newest returns when the last answer came; zero: none did.
func (p *port) newest() time.Time {
	if p.read[long].After(p.read[short]) {
		return p.read[long]
	}
	return p.read[short]
}
