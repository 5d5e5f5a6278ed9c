package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition"
	"portcullis/fabricsm/partition/conf"
	"portcullis/fabricsm/sm"
)

// partitions turns a partition file and what is seen of the fabric into
// intents.
type partitions struct {
	file    string
	log     *slog.Logger
	intents chan sm.Intent // holds the latest

	mu     sync.Mutex
	rules  *conf.Rules
	stale  bool // ports came or went, or rules changed, since members were made
	seen   *sm.View
	places conf.Places
	given  []partition.Member
	number int64 // of the last intent; 0: none
}

// openPartitions reads a file; one with an error is refused.
func openPartitions(file string, log *slog.Logger) (*partitions, error) {
	p := &partitions{file: file, log: log, intents: make(chan sm.Intent, 1), stale: true}
	rules, err := p.read()
	if err != nil {
		return nil, err
	}
	p.rules = rules
	return p, nil
}

func (p *partitions) read() (*conf.Rules, error) {
	f, err := os.Open(p.file)
	if err != nil {
		return nil, fmt.Errorf("read partitions: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, conf.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("read partitions: %w", err)
	}
	rules, err := conf.Parse(p.file, data)
	if err != nil {
		return nil, err
	}
	for _, n := range rules.Notices {
		p.log.Warn(n)
	}
	return rules, nil
}

// reload reads the file again and reports whether that changed what is wanted.
// With an error in it nothing changes.
func (p *partitions) reload() (bool, error) {
	rules, err := p.read()
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.stale = rules, true
	return p.seen != nil && p.update(), nil
}

// event takes notice of ports that come and go.
func (p *partitions) event(e sm.Event) {
	switch e.(type) {
	case *sm.PortPlaced, *sm.PortGone:
		p.mu.Lock()
		p.stale = true
		p.mu.Unlock()
	default:
	}
}

// view looks at a new view and reports whether it changed what is wanted. What
// is discovered only in part is not looked at.
func (p *partitions) view(v *sm.View) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if v.State != ib.SMMaster {
		return false
	}
	p.seen = v
	if !p.stale {
		return false
	}
	p.stale = false
	return p.update()
}

// update makes an intent of what is seen. Called with mu held.
func (p *partitions) update() bool {
	members, places := p.rules.Members(p.seen.Fabric, p.seen.GUID, p.places)
	p.places = places
	if p.number > 0 && slices.Equal(members, p.given) {
		return false
	}
	p.given = members
	p.number++
	in := sm.Intent{Revision: p.number}
	for _, m := range members {
		in.Grants = append(in.Grants, sm.Grant(m))
	}
	select {
	case <-p.intents: // nobody has taken the one before
	default:
	}
	p.intents <- in
	return true
}

// inForce reports whether the latest intent is what a view was made under.
func (p *partitions) inForce(v *sm.View) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stale && p.number > 0 && v.Revision == p.number
}

// missing lists GUIDs that the file names and that are nowhere.
func (p *partitions) missing() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, part := range p.rules.Partitions {
		for _, w := range part.Who {
			if _, ok := p.places[w.GUID]; w.Group == conf.OnePort && !ok {
				out = append(out, fmt.Sprintf("port %v of partition %v is not seen, or at several places", w.GUID, part.PKey))
			}
		}
	}
	return out
}
