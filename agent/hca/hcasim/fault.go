package hcasim

import "portcullis/agent/hca/register"

// Fault is something that goes wrong with some commands.
type Fault struct {
	Kind   FaultKind
	ID     register.ID     // of the register; 0: any command
	Method register.Method // of the register, if ID is given
	After  int             // so many commands that fit go well before
	Times  int             // how many go wrong; 0: all that follow

	Status register.Status // of a Refusal
	// Lie changes the answer of a Lying card: data is that of the answer.
	Lie func(data []byte)
}

// FaultKind says what goes wrong.
type FaultKind uint8

// Faults.
const (
	Refusal     FaultKind = iota + 1 // the firmware answers Status, and does nothing
	Timeout                          // the driver times out; the command was not done
	LostReply                        // the driver times out; the command was done
	Silence                          // the command never ends
	WrongLength                      // the answer is four bytes short
	Lying                            // the answer says something else
	PowerLoss                        // before the command
)

// Inject adds a fault. If several faults fit a command, the first counts.
func (c *Card) Inject(f Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = append(c.faults, f)
}

// Heal takes all faults away.
func (c *Card) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults = nil
}

// CutPower lets so many more writes to the card's memory succeed; then the
// power is gone, in the middle of whatever it is doing, and comes back.
func (c *Card) CutPower(writes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.power = power{armed: true, left: writes}
}

// power is how long it lasts.
type power struct {
	armed, gone bool
	left        int // writes
}

// durable makes a change that a loss of power does not undo, unless the power is
// gone.
func (p *power) durable(change func()) {
	if p.armed && p.left == 0 {
		p.gone = true
	}
	if p.gone {
		return
	}
	p.left--
	change()
}

// faults are those that a card has.
type faults []Fault

// of finds the fault of a command, and counts it.
func (all faults) of(r register.RPC) (Fault, bool) {
	access, err := register.DecodeAccess(r.In)
	for i := range all {
		f := &all[i]
		if f.ID != 0 && (err != nil || access.ID != f.ID || access.Method != f.Method) || f.Times < 0 {
			continue
		}
		if f.After > 0 {
			f.After--
			continue
		}
		found := *f
		if f.Times > 0 {
			if f.Times--; f.Times == 0 {
				f.Times = -1 // spent
			}
		}
		return found, true
	}
	return Fault{}, false
}

// distort spoils an answer.
func (f Fault) distort(a *register.Answer) {
	switch {
	case f.Kind == WrongLength && len(a.Data) >= 4:
		a.Data = a.Data[:len(a.Data)-4]
	case f.Kind == Lying && f.Lie != nil && a.Status == register.OK:
		f.Lie(a.Data)
	}
}
