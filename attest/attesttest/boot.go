package attesttest

import (
	"crypto/sha256"
	"encoding/hex"

	"portcullis/attest"
	"portcullis/attest/eventlog"
	"portcullis/attest/eventlog/eventlogtest"
	"portcullis/attest/reference"
)

// PowerOn boots a machine, measured: registers, event log and its digest in the
// statement are those of that boot.
func (h *Host) PowerOn(m eventlogtest.Machine) {
	h.machine = m
	w := m.Boot()
	h.ShowBoot(w)
}

// ShowBoot is PowerOn with any log.
func (h *Host) ShowBoot(w *eventlogtest.Writer) {
	for i, v := range w.Registers() {
		h.Registers[i] = v[:]
	}
	h.Digests, h.measured, h.started = nil, nil, false
	h.ShowLog(w.Bytes())
}

// ShowLog has the host show a log, whatever is in the registers.
func (h *Host) ShowLog(b []byte) {
	h.EventLog, h.Statement.EventLog = b, ""
	if len(b) > 0 {
		sum := sha256.Sum256(b)
		h.Statement.EventLog = hex.EncodeToString(sum[:])
	}
}

// References are reference values of the default class that have the boot of
// eventlogtest.Example, and of the machines given.
func References(more ...eventlogtest.Machine) []reference.Set {
	return ReferencesOf(attest.DefaultPolicy().PCRs, append([]eventlogtest.Machine{eventlogtest.Example()}, more...)...)
}

// ReferencesOf are reference values of machines, of which these registers are
// quoted.
func ReferencesOf(pcrs []int, machines ...eventlogtest.Machine) []reference.Set {
	var boots []reference.Boot
	for _, m := range machines {
		w := m.Boot()
		l, err := eventlog.Parse(w.Bytes())
		if err != nil {
			panic("attesttest: " + err.Error())
		}
		b := reference.Boot{Log: l}
		all := w.Registers()
		for _, pcr := range pcrs {
			b.Quoted = append(b.Quoted, eventlog.Quoted{PCR: pcr, Value: all[pcr]})
		}
		boots = append(boots, b)
	}
	registers, err := reference.Learn(nil, boots)
	if err != nil {
		panic("attesttest: " + err.Error())
	}
	return []reference.Set{{
		Class: reference.DefaultClass, Version: 1, State: reference.Approved, Registers: registers,
		Source: "attesttest", Owner: "ann", Made: Epoch, Reason: "test", Approver: "bob", Trusted: Epoch,
	}}
}
