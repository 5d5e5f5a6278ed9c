package inquiring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"portcullis/cmd/portcullisd/placekeys"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/inquiry"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/topo"
)

const (
	// tries is how often a request is sent that is not answered.
	tries = 2
	// keysFor is how long M_Keys that were read from the store are used: they rotate meanwhile.
	keysFor = time.Minute
)

// session is one inquiry.
type session struct {
	id, actor, tool string
	until           time.Time
	wire            *wire
	own             ib.GUID
	expire          *time.Timer

	mu      sync.Mutex
	over    bool
	keys    *placekeys.Book
	opened  time.Time // the keys
	ways    *inquiry.Ways
	of      *topo.Fabric   // whose ways these are
	sent    map[string]int // by the name of the attribute
	refused int
}

// ask sends the requests that may be made, and returns by request what the tool sees, nil without an answer, and why it was refused.
func (s *session) ask(ctx context.Context, requests []request, timeout time.Duration) (seen []*mad.MAD, refused []string, err error) {
	var out []inquiry.Sent
	var of []int // of requests
	seen, refused = make([]*mad.MAD, len(requests)), make([]string, len(requests))
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return nil, nil, errOver
	}
	ways, keys := s.ways, s.keys
	for i := range requests {
		m, err := inquiry.Request(&requests[i].mad, requests[i].lid, 0, ways, func(at ib.Place) ib.MKey { return keys.At(at, s.own) })
		if err != nil {
			refused[i] = err.Error()
			s.refused++
			continue
		}
		s.sent[m.MAD.Header().AttrName()]++
		out, of = append(out, m), append(of, i)
	}
	s.mu.Unlock()
	for range tries {
		got, err := s.wire.exchange(ctx, out, timeout)
		if err != nil {
			return nil, nil, err
		}
		var again []inquiry.Sent
		var whose []int
		for k, a := range got {
			i := of[k]
			if a == nil {
				again, whose = append(again, out[k]), append(whose, i)
				continue
			}
			if m, ok := inquiry.Answer(&requests[i].mad, &out[k], &a.MAD, a.LID); ok {
				seen[i] = &m
			}
		}
		out, of = again, whose
	}
	return seen, refused, nil
}

// summary says what was asked.
func (s *session) summary() string {
	total := 0
	var by []string
	for _, a := range slices.Sorted(maps.Keys(s.sent)) {
		total += s.sent[a]
		by = append(by, fmt.Sprintf("%s %d", a, s.sent[a]))
	}
	out := fmt.Sprintf("%d requests", total)
	if total > 0 {
		out += ": " + strings.Join(by, ", ")
	}
	if s.refused > 0 {
		out += fmt.Sprintf("; %d refused", s.refused)
	}
	return out
}

// errOver is returned for a session that has ended.
var errOver = errors.New("the inquiry has ended")
