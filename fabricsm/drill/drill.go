package drill

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"portcullis/fabricsm/drill/result"
)

// Drill is one threat, played out.
type Drill struct {
	ID     string // of the threat: "T17"
	Threat string // action of the attacker: a sentence in the imperative
	Needs  string // missing condition to play it; "" for one that can be played
	Play   func(*Scene)
}

// Options say how drills are played.
type Options struct {
	Seed    uint64
	Without []Control // controls that are switched off
}

// lastLooks is how many packets victims send, at least, after all is over.
const lastLooks = 10

// ErrEnded ends a drill that cannot go on.
var ErrEnded = errors.New("the drill ended")

// Run plays a drill.
func Run(d Drill, o Options) result.Result {
	s := &Scene{Options: o, Result: result.Result{ID: d.ID, Threat: d.Threat, Without: result.Names(o.Without), Needs: d.Needs}}
	if d.Play == nil {
		if s.Result.Needs == "" {
			s.Result.Needs = "it is not written"
		}
		return s.Result
	}
	s.play(d)
	s.count()
	s.Result.Passed = len(s.Result.Failures) == 0
	return s.Result
}

func (s *Scene) play(d Drill) {
	defer func() {
		if r := recover(); r != nil && r != any(ErrEnded) {
			panic(r)
		}
	}()
	d.Play(s)
	for _, site := range s.sites {
		for range lastLooks {
			site.Run(time.Second / lastLooks) // last effects on victims
			site.Live()
		}
		s.Must(site.Err())
	}
	if len(s.Result.Tried) == 0 {
		s.fail("nothing was tried")
	}
}

// Scene is where a drill is played.
type Scene struct {
	Options Options
	Result  result.Result
	sites   []*Site
}

// Tried says what the attacker does.
func (s *Scene) Tried(format string, args ...any) { Note(&s.Result.Tried, format, args) }

// Stopped says what stopped it.
func (s *Scene) Stopped(format string, args ...any) { Note(&s.Result.Stopped, format, args) }

// Check demands that ok is true. The text says what is wrong if it is not: "the packet reached h3".
func (s *Scene) Check(ok bool, what string, args ...any) bool {
	if !ok {
		s.fail(what, args...)
	}
	return ok
}

// Must ends the drill, which then fails, if there is an error.
func (s *Scene) Must(err error) {
	if err != nil {
		s.fail("%v", err)
		panic(ErrEnded)
	}
}

// Off reports whether a control is switched off.
func (s *Scene) Off(c Control) bool { return slices.Contains(s.Options.Without, c) }

// Reported records where something was reported without an event.
func (s *Scene) Reported(format string, args ...any) { Note(&s.Result.Reported, format, args) }

// Seed is that of all random choices.
func (s *Scene) Seed() uint64 { return s.Options.Seed }

func (s *Scene) fail(format string, args ...any) { Note(&s.Result.Failures, format, args) }

// maxNotes bounds what a drill says of one kind.
const maxNotes = 20

func Note(list *[]string, format string, args []any) {
	text := fmt.Sprintf(format, args...)
	if len(*list) < maxNotes && !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

func Longest(at **result.Seconds, d time.Duration) {
	if *at == nil || time.Duration(**at) < d {
		s := result.Seconds(d)
		*at = &s
	}
}

// NeedsService is why drills wait that are about permissions to request something. Package cmd/portcullis-sim/drills plays
// them, with the service.
const NeedsService = "the service: package cmd/portcullis-sim/drills plays it"
