// Package partitionfile turns a partition file in the grammar of OpenSM, and what is seen of the fabric, into what a Subnet
// Manager is to program.
package partitionfile

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/partition/conf"
	"portcullis/fabricsm/sm"
)

// File is a partition file and what is seen of the fabric, from which it makes
// intents.
type File struct {
	file   string
	log    *slog.Logger
	inputs chan sm.Input // holds an sm.IntentChanged that was not taken yet

	mu     sync.Mutex
	rules  *conf.Rules
	stale  bool // ports came or went, or rules changed, since members were made
	seen   *sm.View
	seats  *conf.Seating
	number int64 // of the last intent; 0: none
}

// Open reads a file; one with an error is refused.
func Open(file string, log *slog.Logger) (*File, error) {
	p := &File{file: file, log: log, inputs: make(chan sm.Input, 1), stale: true}
	rules, err := p.read()
	if err != nil {
		return nil, err
	}
	p.rules, p.seats = rules, conf.NewSeating(rules)
	return p, nil
}

func (p *File) read() (*conf.Rules, error) {
	f, err := os.Open(p.file)
	if err != nil {
		return nil, fmt.Errorf("read partitions: %w", err)
	}
	defer f.Close()
	var data bytes.Buffer
	if info, err := f.Stat(); err == nil {
		data.Grow(int(min(info.Size(), conf.MaxSize)) + bytes.MinRead)
	}
	if _, err := data.ReadFrom(io.LimitReader(f, conf.MaxSize+1)); err != nil {
		return nil, fmt.Errorf("read partitions: %w", err)
	}
	rules, err := conf.Parse(p.file, data.Bytes())
	if err != nil {
		return nil, err
	}
	for _, n := range rules.Notices {
		p.log.Warn(n)
	}
	return rules, nil
}

// Reload reads the file again and reports whether that changed what is wanted.
// With an error in it nothing changes.
func (p *File) Reload() (bool, error) {
	rules, err := p.read()
	if err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules, p.stale = rules, true
	p.seats.SetRules(rules)
	return p.seen != nil && p.update(), nil
}

// Inputs returns the channel on which changes of what is wanted come.
func (p *File) Inputs() <-chan sm.Input { return p.inputs }

// Rules returns the rules in force.
func (p *File) Rules() *conf.Rules {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rules
}

// OnEvent takes notice of ports that come and go.
func (p *File) OnEvent(e sm.Event) {
	switch e := e.(type) {
	case *sm.PortPlaced:
		p.moved(func() { p.seats.Moved(e.GUID) })
	case *sm.PortGone:
		p.moved(func() { p.seats.Moved(e.GUID) })
	case *sm.StateChanged: // no event reports moves under another subnet manager
		p.moved(p.seats.MovedAll)
	default:
	}
}

func (p *File) moved(note func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	note()
	p.stale = true
}

// OnView looks at a new view and reports whether it changed what is wanted. A view that is discovered only in part is not
// looked at.
func (p *File) OnView(v *sm.View) bool {
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

// update sends an intent for the ports that are seen, by what has changed. Called with mu held.
func (p *File) update() bool {
	granted, withdrawn := p.seats.Seat(p.seen.Fabric, p.seen.GUID)
	if p.number > 0 && len(granted)+len(withdrawn) == 0 {
		return false
	}
	p.number++
	change := &sm.IntentChanged{Revision: p.number, Grant: granted, Withdraw: withdrawn}
	select {
	case in := <-p.inputs: // the one before was not taken
		if before, ok := in.(*sm.IntentChanged); ok {
			change = before.Then(change)
		}
	default:
	}
	p.inputs <- change
	return true
}

// InForce reports whether the latest intent is what a view was made under.
func (p *File) InForce(v *sm.View) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stale && p.number > 0 && v.Revision == p.number
}

// Missing lists GUIDs that the file names and that are nowhere.
func (p *File) Missing() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, part := range p.rules.Partitions {
		for _, w := range part.Who {
			if w.Group != conf.OnePort {
				continue
			}
			if _, ok := p.seats.PlaceOf(w.GUID); !ok {
				out = append(out, fmt.Sprintf("port %v of partition %v is not seen, or at several places", w.GUID, part.PKey))
			}
		}
	}
	return out
}
