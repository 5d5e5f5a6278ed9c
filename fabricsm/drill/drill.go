package drill

import (
	"errors"
	"fmt"
	"slices"
	"time"
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

// Result is what became of a drill.
type Result struct {
	ID     string `json:"id"`
	Threat string `json:"threat"`
	Passed bool   `json:"passed"`

	Without  []Control `json:"without,omitempty"`
	Tried    []string  `json:"tried,omitempty"`
	Stopped  []string  `json:"stopped,omitempty"`
	Reported []string  `json:"reported,omitempty"`
	Failures []string  `json:"failures,omitempty"`
	Needs    string    `json:"needs,omitempty"` // why it was not played

	// Detected and Isolated are the longest times that passed from an attack to
	// its report and to its end, in virtual time; nil where there was nothing to
	// wait for.
	Detected *Seconds `json:"detected_s,omitempty"`
	Isolated *Seconds `json:"isolated_s,omitempty"`
	Victims  Felt     `json:"victims"`
}

// Seconds is a time that is written as a number of seconds.
type Seconds time.Duration

// MarshalJSON returns seconds with six digits behind the point.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, "%.6f", time.Duration(s).Seconds()), nil
}

// Felt counts what became of the packets of all victims of a drill.
type Felt struct {
	Sent    uint64 `json:"sent"`
	Lost    uint64 `json:"lost"`
	Strayed uint64 `json:"strayed"` // reached another host
}

// lastLooks is how many packets victims send, at least, after all is over.
const lastLooks = 10

// errEnded ends a drill that cannot go on.
var errEnded = errors.New("the drill ended")

// Run plays a drill.
func Run(d Drill, o Options) (r Result) {
	s := &Scene{options: o, result: Result{ID: d.ID, Threat: d.Threat, Without: o.Without, Needs: d.Needs}}
	if d.Play == nil {
		if s.result.Needs == "" {
			s.result.Needs = "nobody has written it"
		}
		return s.result
	}
	s.play(d)
	s.count()
	s.result.Passed = len(s.result.Failures) == 0
	return s.result
}

func (s *Scene) play(d Drill) {
	defer func() {
		if r := recover(); r != nil && r != any(errEnded) {
			panic(r)
		}
	}()
	d.Play(s)
	for _, site := range s.sites {
		for range lastLooks {
			site.Run(time.Second / lastLooks) // last effects on victims
			site.live()
		}
		s.Must(site.Err())
	}
	if len(s.result.Tried) == 0 {
		s.fail("nothing was tried")
	}
}

// Scene is where a drill is played.
type Scene struct {
	options Options
	result  Result
	sites   []*Site
}

// Tried says what the attacker does.
func (s *Scene) Tried(format string, args ...any) { note(&s.result.Tried, format, args) }

// Stopped says what stopped it.
func (s *Scene) Stopped(format string, args ...any) { note(&s.result.Stopped, format, args) }

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
		panic(errEnded)
	}
}

// Off reports whether a control is switched off.
func (s *Scene) Off(c Control) bool { return slices.Contains(s.options.Without, c) }

// Reported records where something was reported without an event.
func (s *Scene) Reported(format string, args ...any) { note(&s.result.Reported, format, args) }

// Seed is that of all random choices.
func (s *Scene) Seed() uint64 { return s.options.Seed }

func (s *Scene) fail(format string, args ...any) { note(&s.result.Failures, format, args) }

// maxNotes bounds what a drill says of one kind.
const maxNotes = 20

func note(list *[]string, format string, args []any) {
	text := fmt.Sprintf(format, args...)
	if len(*list) < maxNotes && !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

func longest(at **Seconds, d time.Duration) {
	if *at == nil || time.Duration(**at) < d {
		s := Seconds(d)
		*at = &s
	}
}
