package portset

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// maxRounds is how many Sets in a row may change nothing before a port is left alone for a while.
const maxRounds = 4

// neverForgotten are fields without which a port does not work: a device that does not keep them is broken, and is asked
// again.
const neverForgotten = LID | MasterSMLID

// State is what became of the Sets of a port. The zero value is that of a port that was never set.
type State struct {
	tried    Fields       // fields that the Set that is out changes
	asked    ib.PortState // that the Set that is out asks for
	rounds   uint8        // Sets in a row that changed nothing
	renews   bool         // the Set that is out carries ClientReregister
	renew    bool         // clients have still to renew what they registered
	proven   bool         // the enforcement bits were read back with a Get
	accepted bool         // a Set of the enforcement bits was accepted
}

// Begin records a Set that goes out: the fields that it changes, and the state that it asks for.
func (s *State) Begin(tried Fields, asked ib.PortState, renews bool) {
	s.tried, s.asked, s.renews = tried, asked, renews
}

// Tried returns the fields that the last Set changed.
func (s *State) Tried() Fields { return s.tried }

// Count counts an answer to a Set. It reports whether too many in a row have changed nothing.
func (s *State) Count() (stuck bool) {
	s.rounds++
	return s.IsStuck()
}

// IsStuck reports whether too many Sets in a row have changed nothing.
func (s *State) IsStuck() bool { return s.rounds > maxRounds }

// Restart begins to count the Sets that change nothing.
func (s *State) Restart() { s.rounds = 0 }

// Moved reports whether the answer to a Set, which missed some fields, shows any change.
func (s *State) Moved(got *mad.PortInfo, missed Fields) bool {
	return s.asked != ib.PortNop && got.PortState == s.asked || s.tried&^missed != 0
}

// Renewed records that a Set was accepted, with the request to renew registrations if it carried one.
func (s *State) Renewed() {
	if s.renews {
		s.renews, s.renew = false, false
	}
}

// RenewLater has the clients of the port renew what they registered.
func (s *State) RenewLater() { s.renew = true }

// Accept records that a Set of the enforcement bits was accepted.
func (s *State) Accept() { s.accepted = true }

// Show records whether an answer shows the enforcement bits. Only a Get proves them.
func (s *State) Show(bits, byGet bool) { s.proven = bits && (byGet || s.proven) }

// IsProven reports whether the enforcement bits were read back with a Get.
func (s *State) IsProven() bool { return s.proven }

// DoubtBits forgets that the enforcement bits were read back.
func (s *State) DoubtBits() { s.proven = false }

// ForgetBits forgets that the enforcement bits were accepted or read back.
func (s *State) ForgetBits() { s.proven, s.accepted = false, false }

// Learn returns which fields a device does not keep, after a Set of some fields missed others. now had been known before.
func Learn(now, tried, missed Fields) Fields {
	missed &^= neverForgotten
	kept := tried &^ missed
	return now&^kept | missed
}
