package attest_test

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"portcullis/attest"
	"portcullis/attest/attesttest"
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
func showing(alter func(log []byte) []byte) func(*attempt) {
	return func(a *attempt) {
		a.host.PowerOn(alone())
		a.host.ShowLog(alter(bytes.Clone(a.host.EventLog)))
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
func booting(change func(*eventlogtest.Machine)) func(*attempt) {
	return func(a *attempt) {
		m := eventlogtest.Example()
		change(&m)
		a.host.PowerOn(m)
	}
}

// showingEvents has a host boot what write measures besides, which may be
// wrong.
func showingEvents(write func(*eventlogtest.Writer)) func(*attempt) {
	return func(a *attempt) {
		m := alone()
		w := m.Boot()
		write(w)
		a.host.ShowBoot(w)
	}
}

// withSets has the site know other reference values.
func withSets(change func(*reference.Set)) func(*attempt) {
	return func(a *attempt) {
		sets := attesttest.References()
		change(&sets[0])
		a.exp.References = sets
	}
}

// brokenBoots are the negative tests of measured boot, 33 to 40 and 70, and
// T101 and T106.
func brokenBoots() []broken {
	return []broken{
		{name: "no event log", want: attest.ReasonEventLog, host: func(a *attempt) { a.host.ShowLog(nil) }},
		{name: "33: trailing garbage", want: attest.ReasonEventLog, host: showing(func(b []byte) []byte { return append(b, 0) })},
		{name: "33: truncated event", want: attest.ReasonEventLog, host: showing(func(b []byte) []byte { return b[:len(b)-1] })},
		{name: "33: event of 0xffffffff bytes", want: attest.ReasonEventLog, host: showing(func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[logHeader(b)+46:], 0xffffffff)
			return b
		})},
		{name: "34: header only, registers not zero", want: attest.ReasonEventLog, host: showing(func(b []byte) []byte { return b[:logHeader(b)] })},
		{name: "35: all events of PCR 6 gone", want: attest.ReasonEventLog, host: showing(without(6))},
		{name: "35: all events of PCR 4 gone", want: attest.ReasonEventLog, host: showing(without(4))},
		{name: "36: SHA-256 twice in an event", want: attest.ReasonEventLog, host: showing(func(b []byte) []byte {
			binary.LittleEndian.PutUint32(b[logHeader(b)+8:], 2)
			at := logHeader(b) + 12
			return append(b[:at:at], append(bytes.Clone(b[at:at+34]), b[at:]...)...)
		})},
		{name: "36: an event without SHA-256", want: attest.ReasonEventLog, host: showing(func(b []byte) []byte {
			b[logHeader(b)+12] = 0x0c
			return b
		})},
		{name: "37: StartupLocality twice", want: attest.ReasonEventLog, host: func(a *attempt) {
			w := &eventlogtest.Writer{}
			w.NoAction(0, []byte("StartupLocality\x00\x03"))
			w.NoAction(0, []byte("StartupLocality\x00\x03"))
			a.host.ShowBoot(w)
		}},
		{name: "37: StartupLocality late", want: attest.ReasonEventLog, host: showingEvents(func(w *eventlogtest.Writer) {
			w.NoAction(0, []byte("StartupLocality\x00\x00"))
		})},
		{name: "37: StartupLocality 9", want: attest.ReasonEventLog, host: booting(func(m *eventlogtest.Machine) { m.Locality = 9 })},
		{name: "StartupLocality that was not", want: attest.ReasonEventLog, host: booting(func(m *eventlogtest.Machine) { m.Locality = 3 })},
		{name: "39: golden log of another firmware version", want: attest.ReasonReference, host: booting(func(m *eventlogtest.Machine) { m.Firmware = "2.20.0" })},
		{name: "40: SHA-1 alone", want: attest.ReasonEventLog, host: func(a *attempt) {
			m := eventlogtest.Example()
			m.Banks = []eventlogtest.Bank{eventlogtest.SHA1}
			a.host.PowerOn(m)
		}},
		{name: "T101: log of the golden boot over registers of another", want: attest.ReasonEventLog, host: func(a *attempt) {
			golden := a.host.EventLog
			m := eventlogtest.Example()
			m.Image = "tenant's"
			a.host.PowerOn(m)
			a.host.ShowLog(golden)
		}},
		{name: "a boot loader that is not the site's", want: attest.ReasonReference, host: booting(func(m *eventlogtest.Machine) { m.Image = "tenant's" })},
		{name: "Secure Boot keys that are not the site's", want: attest.ReasonReference, host: booting(func(m *eventlogtest.Machine) { m.Keys = "tenant's" })},
		{name: "firmware that did not come to its end", want: attest.ReasonReference, host: func(a *attempt) { a.host.ShowBoot(&eventlogtest.Writer{}) }},
		{name: "70: no reference set configured", want: attest.ReasonReference, wire: func(a *attempt) { a.exp.References = nil }},
		{name: "70: sets of another class alone", want: attest.ReasonReference, wire: func(a *attempt) { a.exp.Class = "storage" }},
		{name: "70: no class", want: attest.ReasonReference, wire: func(a *attempt) { a.exp.Class = "" }},
		{name: "a set that nobody approved", want: attest.ReasonReference, wire: withSets(func(s *reference.Set) { s.State = reference.Draft })},
		{name: "a set that was ended", want: attest.ReasonReference, wire: withSets(func(s *reference.Set) { s.State = reference.Ended })},
		{name: "a set that has expired", want: attest.ReasonReference, wire: withSets(func(s *reference.Set) { s.Expires = attesttest.Epoch })},
		{name: "T106: a waiver that has expired", want: attest.ReasonReference, wire: withSets(func(s *reference.Set) {
			s.Waiver, s.Registers, s.Made, s.Expires = true, nil, attesttest.Epoch.Add(-time.Hour), attesttest.Epoch
		})},
		{name: "T106: a waiver does not excuse a log that does not replay", want: attest.ReasonEventLog, host: showing(without(6)), wire: withSets(waived)},
	}
}

func waived(s *reference.Set) {
	s.Waiver, s.Registers, s.Expires = true, nil, attesttest.Epoch.Add(time.Hour)
}

func TestVerifyRefusesBoots(t *testing.T) {
	t.Parallel()
	for _, tc := range brokenBoots() {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			v := tc.verdict(t)
			if v.OK || v.Code != tc.want || v.Detail == "" {
				t.Errorf("got OK %v, reason %s, detail %q; want reason %s", v.OK, v.Code, v.Detail, tc.want)
			}
			if (v.Measured != nil) != (tc.want == attest.ReasonReference) {
				t.Errorf("measured boot %v, though the reason is %s", v.Measured, tc.want)
			}
		})
	}
}

func TestVerifyAcceptsBoots(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		broken
		reference string
		waived    int
	}{
		{broken: broken{name: "one bank"}, reference: "default/1"},
		{broken: broken{name: "38: event types rewritten", host: showing(func(b []byte) []byte {
			for at := logHeader(b); at < len(b); {
				binary.LittleEndian.PutUint32(b[at+4:], uint32(eventlog.Action))
				at += 46 + 4 + int(binary.LittleEndian.Uint32(b[at+46:]))
			}
			return b
		})}, reference: "default/1"},
		{broken: broken{name: "roll-out of firmware", host: booting(func(m *eventlogtest.Machine) { m.Firmware = "2.20.0" }), wire: func(a *attempt) {
			m := eventlogtest.Example()
			m.Firmware = "2.20.0"
			fresh := attesttest.ReferencesOf(a.policy.PCRs, m)[0]
			fresh.Version = 2
			a.exp.References = append(a.exp.References, fresh)
		}}, reference: "default/2"},
		{broken: broken{name: "T106: a waiver in force, and it shows", host: booting(func(m *eventlogtest.Machine) { m.Firmware = "0.9" }), wire: withSets(waived)}, reference: "default/1", waived: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			plain := (&broken{}).verdict(t)
			v := tc.verdict(t)
			if !v.OK || v.Facts.Reference != tc.reference || v.Measured == nil {
				t.Errorf("%s: %s, reference %q; want it accepted by %q", v.Code, v.Detail, v.Facts.Reference, tc.reference)
			}
			if got := len(v.Facts.Waived) - len(plain.Facts.Waived); got != tc.waived {
				t.Errorf("waived %q", v.Facts.Waived)
			}
		})
	}
}
