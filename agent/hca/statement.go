package hca

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"portcullis/agent/hca/register"
	"portcullis/attest"
)

// Statement returns the device in the form of statements. An unknown fact is recorded as unknown, with its reason. Lock has
// the state of MLOCK alone: the code that locks the device fills in the rest.
func (d *Device) Statement(v Verdict) attest.HCA {
	h := attest.HCA{
		Name: d.Name, PCI: string(d.PCI), Type: d.Type,
		Serial: d.Serial.or(), PartNumber: d.PartNumber.or(),
		DeviceID: uint16(d.DeviceID.or()), HardwareID: uint16(d.HardwareID.or()),
		NodeGUID: d.NodeGUID.or(), SystemImageGUID: d.SystemImageGUID.or(), BaseGUID: d.BaseGUID.or(),
		AlternateGUID: d.AlternateGUID.or(), PSID: d.PSID.or(),
		Firmware: attest.Firmware{
			LifeCycle: d.LifeCycle.or(), SecureBoot: d.SecureBoot.or(), Recovery: d.Recovery.or(),
			SecurityVersion: numberOf(&d.SecurityVersion), RollbackFloor: numberOf(&d.RollbackFloor),
			Assurance: v.Assurance, Reference: v.Reference,
		},
	}
	if mac, ok := d.BaseMAC.Value(); ok {
		h.BaseMAC = mac.String()
	}
	if running, ok := d.Running.Value(); ok {
		h.Firmware.Running = running.String()
	}
	if pending, ok := d.Pending.Value(); ok {
		h.Firmware.Pending = pending.String()
	}
	if text, ok := d.Attributes.Value(); ok {
		h.Firmware.Attributes = strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
	}
	if state, ok := d.MLOCK.Value(); ok {
		h.Lock.MLOCK = MLOCK(state)
	}
	if len(d.Registers) > 0 {
		sum := sha256.Sum256(d.Registers)
		h.Registers = hex.EncodeToString(sum[:])
	}
	d.stateTokens(&h)
	d.statePorts(&h)
	d.stateSources(&h)
	return h
}

// or returns the value, or the zero one, which statements read as unknown.
func (f *Fact[T]) or() T { v, _ := f.Value(); return v }

// numberOf returns a number that may be zero and known.
func numberOf(f *Fact[Number]) *uint32 {
	v, ok := f.Value()
	if !ok {
		return nil
	}
	n := uint32(v)
	return &n
}

// MLOCK returns a state of secure host in the form of statements.
func MLOCK(s register.LockState) attest.MLOCK {
	switch s {
	case register.Unlocked:
		return attest.MLOCKUnlocked
	case register.Locked:
		return attest.MLOCKLocked
	case register.LockedFWUpdate:
		return attest.MLOCKFirmwareUpdate
	case register.LockedHostCfg:
		return attest.MLOCKHostConfig
	}
	return attest.MLOCKUnknown
}

func (d *Device) stateTokens(h *attest.HCA) {
	for i := range d.Tokens {
		t := &d.Tokens[i]
		h.Tokens = append(h.Tokens, attest.Token{Kind: tokenKind(t.Kind), Session: t.Session.or()})
	}
	slices.SortFunc(h.Tokens, func(a, b attest.Token) int { return cmp.Compare(a.Kind, b.Kind) })
}

func (d *Device) statePorts(h *attest.HCA) {
	for i := range d.Ports {
		p := &d.Ports[i]
		h.Ports = append(h.Ports, attest.Port{
			Num: p.Num, GUID: p.GUID.or(), LinkLayer: attest.LinkInfiniBand, HasSMI: p.HasSMI.or(),
		})
	}
	for _, num := range d.Ethernet {
		h.Ports = append(h.Ports, attest.Port{Num: num, LinkLayer: attest.LinkEthernet})
	}
	slices.SortFunc(h.Ports, func(a, b attest.Port) int { return cmp.Compare(a.Num, b.Num) })
}

func (d *Device) stateSources(h *attest.HCA) {
	for _, l := range d.Lines() {
		if l.Reason != "" {
			h.Unread = append(h.Unread, attest.Unread{Fact: l.Fact, Reason: string(l.Reason)})
			continue
		}
		var from []string
		for _, s := range l.From {
			from = append(from, string(s))
		}
		h.Sources = append(h.Sources, attest.Source{Fact: l.Fact, From: strings.Join(from, ", ")})
	}
	if len(d.Tokens) == 0 {
		reason, _ := d.LifeCycle.Why()
		h.Unread = append(h.Unread, attest.Unread{Fact: "tokens", Reason: string(cmp.Or(reason, ReasonNotTold))})
	}
	slices.SortFunc(h.Sources, func(a, b attest.Source) int { return cmp.Compare(a.Fact, b.Fact) })
	slices.SortFunc(h.Unread, func(a, b attest.Unread) int { return cmp.Compare(a.Fact, b.Fact) })
}
