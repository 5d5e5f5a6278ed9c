package keys

import "portcullis/fabricsm/ib"

// Next says what to do. place is where the device is seen; verified says that
// it is where the topology wants it. Sending is up to the caller: it may ask
// again, and gets the same Step until Answered or Silent.
func (r *Ring) Next(place ib.Place, verified bool) Step {
	s := r.step(place, verified)
	s.Save = r.dirty
	return s
}

// Saved says that the record is durable. A caller whose output is saved before
// it is sent may call it right after Next.
func (r *Ring) Saved() { r.dirty = false }

func (r *Ring) step(place ib.Place, verified bool) Step {
	if r.rec.Current.IsZero() && r.rec.Pending.IsZero() {
		return Step{}
	}
	if r.withheld(place, verified) {
		return Step{Do: Withhold}
	}
	switch r.belief {
	case unknown, checking:
		return Step{Do: Ask, Header: r.candidates()[r.asked].Key}
	case open:
		return r.program(Key{})
	case onPrior:
		return r.program(r.rec.Previous.Key)
	case onCurrent:
		if !r.rec.Pending.IsZero() || r.commit {
			return r.program(r.rec.Current.Key)
		}
		return Step{}
	case stranded:
		return Step{Do: Stranded}
	default:
		return Step{Do: Foreign}
	}
}

func (r *Ring) program(header Key) Step {
	if r.sets == maxSets {
		return Step{Do: Refusing}
	}
	return Step{Do: Program, Header: header, New: r.target().Key}
}

// target is the key that the device should hold in the end.
func (r *Ring) target() Held {
	if !r.rec.Pending.IsZero() {
		return r.rec.Pending
	}
	return r.rec.Current
}

// candidates are the keys of Try; the one that was just sent comes first.
func (r *Ring) candidates() []Held {
	try := r.rec.Try()
	if r.belief == checking && len(try) == 2 && try[0] != r.target() {
		try[0], try[1] = try[1], try[0]
	}
	return try
}

// Sent records that the Set of a Program was sent, and whether it was answered or refused. Which key the device is on is
// known only from the Get that follows; but only that answer shows that it dropped Previous.
func (r *Ring) Sent(answered bool) {
	r.sets++
	r.obeyed = answered
	r.belief, r.asked = checking, 0
}

// Lost says that the Set of a Program was sent, and that nothing came back.
func (r *Ring) Lost() {
	if r.lost++; r.lost%lostPerSet == 0 {
		r.sets++
	}
	r.obeyed = false
	r.belief, r.asked = checking, 0
}

// Answered takes the key that an Ask showed, and returns which key the device is on. The answer to a Program is not taken:
// it may have been made before the Set.
func (r *Ring) Answered(seen Seen) Finding {
	if seen.Hidden {
		r.Silent()
		return FoundNothing
	}
	set := r.belief == checking
	r.asked = 0
	switch {
	case seen.Key.IsZero():
		r.belief = open
		return FoundOpen
	case seen.Key == r.rec.Pending.Key:
		r.rec.Previous, r.rec.Current, r.rec.Pending = r.rec.Current, r.rec.Pending, Held{}
		r.dirty, r.belief, r.sets = true, onCurrent, 0
		return FoundNew
	case seen.Key == r.rec.Current.Key:
		if set && r.obeyed && r.commit {
			r.rec.Previous, r.commit, r.dirty = Held{}, false, true
		}
		r.belief = onCurrent
		if r.rec.Pending.IsZero() && !r.commit {
			r.sets = 0
		}
		return FoundCurrent
	case seen.Key == r.rec.Previous.Key:
		r.belief = onPrior
		return FoundPrevious
	default:
		r.belief = foreign
		return FoundForeign
	}
}

// Silent says that an Ask had no answer after all tries of the transport.
func (r *Ring) Silent() {
	if r.asked++; r.asked == len(r.candidates()) {
		r.belief, r.asked = stranded, 0
	}
}

// Finding is what an answer showed.
type Finding uint8

// Findings.
const (
	FoundNothing  Finding = iota // the key was hidden
	FoundCurrent                 // Current: nothing changed
	FoundNew                     // Pending, which is Current now
	FoundPrevious                // Previous: the device fell back
	FoundOpen                    // no key: it was restarted, or never had one
	FoundForeign                 // a key that is none of ours
)

var findingNames = [...]string{"nothing", "current key", "new key", "previous key", "no key", "foreign key"}

func (f Finding) String() string { return findingNames[f] }
