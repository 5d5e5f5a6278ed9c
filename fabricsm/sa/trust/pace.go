package trust

import (
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/portindex"
)

// window is the time in which requests of a port are counted.
const window = 100 * time.Millisecond

// pace counts requests of ports and aliases.
type pace struct {
	epoch   time.Time
	ports   []count // by base LID
	aliases map[ib.GUID]count
	tick    int64 // of aliases
}

type count struct {
	tick int64 // in windows since epoch
	n    int
}

// take counts a request and reports whether it is within the threshold. Only aliases that the book has for the port are
// counted separately, so there are no more of them than in the fabric.
func (p *pace) take(now time.Time, threshold int, e *portindex.EndPort, as ib.GUID) bool {
	if threshold == 0 {
		return true
	}
	if p.ports == nil {
		p.epoch, p.ports, p.aliases = now, make([]count, 1<<16), make(map[ib.GUID]count)
	}
	tick := int64(now.Sub(p.epoch) / window)
	if as == e.GUID {
		c := &p.ports[e.LID]
		*c = c.next(tick)
		return c.n <= threshold
	}
	if tick != p.tick {
		clear(p.aliases)
		p.tick = tick
	}
	c := p.aliases[as].next(tick)
	p.aliases[as] = c
	return c.n <= threshold
}

func (c count) next(tick int64) count {
	if c.tick != tick {
		return count{tick, 1}
	}
	c.n++
	return c
}
