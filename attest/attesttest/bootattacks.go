package attesttest

import (
	"bytes"
	"encoding/binary"
	"time"

	"portcullis/attest"
	"portcullis/attest/eventlog"
	"portcullis/attest/eventlog/eventlogtest"
	"portcullis/attest/reference"
)

// alone is the example machine with one bank, whose log is easily cut.
func alone() eventlogtest.Machine {
	m := eventlogtest.Example()
	m.Banks = []eventlogtest.Bank{eventlogtest.SHA256}
	return m
}

// showing has the host show a log that the boot does not have.
func showing(alter func(log []byte) []byte) func(*Attempt) {
	return func(a *Attempt) {
		a.Host.PowerOn(alone())
		a.Host.ShowLog(alter(bytes.Clone(a.Host.EventLog)))
	}
}

// without has the log lack the events of one register.
func without(pcr uint32) func([]byte) []byte {
	return func(log []byte) []byte {
		out, rest := log[:logHeader(log)], log[logHeader(log):]
		out = bytes.Clone(out)
		for len(rest) > 0 {
			n := 46 + 4 + int(binary.LittleEndian.Uint32(rest[46:]))
			if binary.LittleEndian.Uint32(rest) != pcr {
				out = append(out, rest[:n]...)
			}
			rest = rest[n:]
		}
		return out
	}
}

func logHeader(log []byte) int { return 32 + int(binary.LittleEndian.Uint32(log[28:])) }

// booting has the host boot another machine.
func booting(change func(*eventlogtest.Machine)) func(*Attempt) {
	return func(a *Attempt) {
		m := eventlogtest.Example()
		change(&m)
		a.Host.PowerOn(m)
	}
}

// showingEvents has a host boot what write measures besides, which may be
// wrong.
func showingEvents(write func(*eventlogtest.Writer)) func(*Attempt) {
	return func(a *Attempt) {
		m := alone()
		w := m.Boot()
		write(w)
		a.Host.ShowBoot(w)
	}
}

// withSets has the site know other reference values.
func withSets(change func(*reference.Set)) func(*Attempt) {
	return func(a *Attempt) {
		sets := References()
		change(&sets[0])
		a.Expected.References = sets
	}
}

// BootAttacks are the negative tests of measured boot, 33 to 40 and 70, and
// T101 and T106.
func BootAttacks() []Attack {
	return []Attack{
		{Name: "no event log", Want: attest.ReasonEventLog, Host: func(a *Attempt) { a.Host.ShowLog(nil) }},
		{Name: "33: trailing garbage", Want: attest.ReasonEventLog, Host: showing(func(b []byte) []byte { return append(b, 0) })},
		{Name: "33: truncated event", Want: attest.ReasonEventLog, Host: showing(func(b []byte) []byte { return b[:len(b)-1] })},
		{Name: "33: event of 0xffffffff bytes", Want: attest.ReasonEventLog, Host: showing(func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[logHeader(b)+46:], 0xffffffff)
			return b
		})},
		{Name: "34: header only, registers not zero", Want: attest.ReasonEventLog, Host: showing(func(b []byte) []byte { return b[:logHeader(b)] })},
		{Name: "35: all events of PCR 6 gone", Want: attest.ReasonEventLog, Host: showing(without(6))},
		{Name: "35: all events of PCR 4 gone", Want: attest.ReasonEventLog, Host: showing(without(4))},
		{Name: "36: SHA-256 twice in an event", Want: attest.ReasonEventLog, Host: showing(func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[logHeader(b)+8:], 2)
			at := logHeader(b) + 12
			return append(b[:at:at], append(bytes.Clone(b[at:at+34]), b[at:]...)...)
		})},
		{Name: "36: an event without SHA-256", Want: attest.ReasonEventLog, Host: showing(func(b []byte) []byte {
			b[logHeader(b)+12] = 0x0c
			return b
		})},
		{Name: "37: StartupLocality twice", Want: attest.ReasonEventLog, Host: func(a *Attempt) {
			w := &eventlogtest.Writer{}
			w.NoAction(0, []byte("StartupLocality\x00\x03"))
			w.NoAction(0, []byte("StartupLocality\x00\x03"))
			a.Host.ShowBoot(w)
		}},
		{Name: "37: StartupLocality late", Want: attest.ReasonEventLog, Host: showingEvents(func(w *eventlogtest.Writer) {
			w.NoAction(0, []byte("StartupLocality\x00\x00"))
		})},
		{Name: "37: StartupLocality 9", Want: attest.ReasonEventLog, Host: booting(func(m *eventlogtest.Machine) { m.Locality = 9 })},
		{Name: "StartupLocality that was not", Want: attest.ReasonEventLog, Host: booting(func(m *eventlogtest.Machine) { m.Locality = 3 })},
		{Name: "39: golden log of another firmware version", Want: attest.ReasonReference, Host: booting(func(m *eventlogtest.Machine) { m.Firmware = "2.20.0" })},
		{Name: "40: SHA-1 alone", Want: attest.ReasonEventLog, Host: func(a *Attempt) {
			m := eventlogtest.Example()
			m.Banks = []eventlogtest.Bank{eventlogtest.SHA1}
			a.Host.PowerOn(m)
		}},
		{Name: "T101: log of the golden boot over registers of another", Want: attest.ReasonEventLog, Host: func(a *Attempt) {
			golden := a.Host.EventLog
			m := eventlogtest.Example()
			m.Image = "tenant's"
			a.Host.PowerOn(m)
			a.Host.ShowLog(golden)
		}},
		{Name: "a boot loader that is not the site's", Want: attest.ReasonReference, Host: booting(func(m *eventlogtest.Machine) { m.Image = "tenant's" })},
		{Name: "Secure Boot keys that are not the site's", Want: attest.ReasonReference, Host: booting(func(m *eventlogtest.Machine) { m.Keys = "tenant's" })},
		{Name: "firmware that did not come to its end", Want: attest.ReasonReference, Host: func(a *Attempt) { a.Host.ShowBoot(&eventlogtest.Writer{}) }},
		{Name: "70: no reference set configured", Want: attest.ReasonReference, Host: func(a *Attempt) { a.Expected.References = nil }},
		{Name: "70: sets of another class alone", Want: attest.ReasonReference, Host: func(a *Attempt) { a.Expected.Class = "storage" }},
		{Name: "70: no class", Want: attest.ReasonReference, Service: func(a *Attempt) { a.Expected.Class = "" }},
		{Name: "a set that is not approved", Want: attest.ReasonReference, Host: withSets(func(s *reference.Set) { s.State = reference.Draft })},
		{Name: "a set that was ended", Want: attest.ReasonReference, Host: withSets(func(s *reference.Set) { s.State = reference.Ended })},
		{Name: "a set that has expired", Want: attest.ReasonReference, Host: withSets(func(s *reference.Set) { s.Expires = Epoch })},
		{Name: "T106: a waiver that has expired", Want: attest.ReasonReference, Host: withSets(func(s *reference.Set) {
			s.Waiver, s.Registers, s.Made, s.Expires = true, nil, Epoch.Add(-time.Hour), Epoch
		})},
		{Name: "T106: a waiver does not excuse a log that does not replay", Want: attest.ReasonEventLog, Host: both(showing(without(6)), withSets(waived))},
	}
}

func waived(s *reference.Set) {
	s.Waiver, s.Registers, s.Expires = true, nil, Epoch.Add(time.Hour)
}

// both does one thing after the other.
func both(first, second func(*Attempt)) func(*Attempt) {
	return func(a *Attempt) { first(a); second(a) }
}

// TrustedBoot is a boot that is accepted, and the facts about it.
type TrustedBoot struct {
	Attack
	Reference string // set that has it
	Waived    int    // how many things
}

// TrustedBoots are boots that differ and are accepted all the same.
func TrustedBoots() []TrustedBoot {
	return []TrustedBoot{
		{Attack: Attack{Name: "one bank"}, Reference: "default/1"},
		{Attack: Attack{Name: "38: event types rewritten", Host: showing(func(b []byte) []byte {
			for at := logHeader(b); at < len(b); {
				binary.LittleEndian.PutUint32(b[at+4:], uint32(eventlog.Action))
				at += 46 + 4 + int(binary.LittleEndian.Uint32(b[at+46:]))
			}
			return b
		})}, Reference: "default/1"},
		{Attack: Attack{Name: "roll-out of firmware", Host: both(booting(func(m *eventlogtest.Machine) { m.Firmware = "2.20.0" }), func(a *Attempt) {
			m := eventlogtest.Example()
			m.Firmware = "2.20.0"
			fresh := ReferencesOf(a.Policy.PCRs, m)[0]
			fresh.Version = 2
			a.Expected.References = append(a.Expected.References, fresh)
		})}, Reference: "default/2"},
		{Attack: Attack{Name: "T106: a waiver in force, and it shows", Host: both(booting(func(m *eventlogtest.Machine) { m.Firmware = "0.9" }), withSets(waived))}, Reference: "default/1", Waived: 1},
	}
}
