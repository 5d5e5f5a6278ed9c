package attesttest

import (
	"strings"

	"portcullis/attest"
)

// Adapter changes the first adapter of a host, or the service's data about it.
type Adapter struct {
	Name  string
	Want  attest.Reason // "": accepted
	Tells string        // part of the detail
	Alter func(*Attempt, *attest.HCA)
}

// Attack is that change as an attack.
func (x *Adapter) Attack() Attack {
	return Attack{Name: x.Name, Want: x.Want, Host: func(a *Attempt) { x.Alter(a, &a.Host.Statement.HCAs[0]) }}
}

func lower(a *Attempt, want attest.Assurance) { a.Policy.Assurance = want }

// Adapters are changes that are accepted or refused.
func Adapters() []Adapter {
	fw := func(change func(*attest.Firmware)) func(*Attempt, *attest.HCA) {
		return func(_ *Attempt, h *attest.HCA) { change(&h.Firmware) }
	}
	lock := func(change func(*attest.Lock)) func(*Attempt, *attest.HCA) {
		return func(_ *Attempt, h *attest.HCA) { change(&h.Lock) }
	}
	return []Adapter{
		{"everything as it should be", "", "", func(*Attempt, *attest.HCA) {}},
		{"settings written plainly, kept by MLOCK", "", "", lock(func(l *attest.Lock) {
			l.Method, l.File = attest.LockWrites, nil
			l.Items[0].Priority = attest.PriorityUser
		})},
		{"a setting the device does not have", "", "", lock(func(l *attest.Lock) {
			l.Items = append(l.Items, attest.Item{Index: 291, Supported: attest.No})
		})},
		{"G2 where G1 is demanded", "", "", fw(func(f *attest.Firmware) { f.Assurance = attest.G2 })},
		{"G3 where G0 is demanded", "", "", func(a *Attempt, h *attest.HCA) {
			lower(a, attest.G0)
			h.Firmware.Assurance, h.Firmware.Reference, h.SPDM = attest.G3, nil, strings.Repeat("0", 64)
		}},
		{"demanded items are met", "", "", func(a *Attempt, _ *attest.HCA) {
			a.Expected.HCAs[0].Lock = attest.ExpectedLock{
				Epoch: 1, File: strings.Repeat("a5", 32),
				Items: []attest.ExpectedItem{{Index: 290, Mask: "80000000", Value: "80000000"}},
			}
		}},
		{"nothing known, waived by policy", "", "", func(a *Attempt, h *attest.HCA) {
			a.Policy.Assurance, a.Policy.RequireLock = attest.AssuranceNone, false
			h.Firmware, h.Lock, h.Tokens = attest.Firmware{Running: "28.43.1014"}, attest.Lock{}, nil
		}},

		{"a DPU, by its PCI device id", attest.ReasonDPU, "is a DPU", func(_ *Attempt, h *attest.HCA) { h.DeviceID = 0xA2DC }},
		{"a DPU, by its hardware id", attest.ReasonDPU, "is a DPU", func(_ *Attempt, h *attest.HCA) { h.HardwareID = 0x21C }},
		{"a DPU where policy lets them in", "", "", func(a *Attempt, h *attest.HCA) { a.Policy.AcceptDPU, h.DeviceID = true, 0xA2DC }},
		{"an unknown chip", attest.ReasonUnread, "chip not known", func(_ *Attempt, h *attest.HCA) { h.DeviceID, h.HardwareID = 0, 0 }},
		{"unsigned firmware", attest.ReasonFirmware, "signed firmware", fw(func(f *attest.Firmware) { f.Attributes = []string{"signed-fw"} })},
		{"no security attributes", attest.ReasonFirmware, "signed firmware", fw(func(f *attest.Firmware) { f.Attributes = []string{} })},
		{"not secured", attest.ReasonFirmware, "ga-non-secured", fw(func(f *attest.Firmware) { f.LifeCycle = attest.LifeGANonSecured })},
		{"in production state", attest.ReasonFirmware, "production", fw(func(f *attest.Firmware) { f.LifeCycle = attest.LifeProduction })},
		{"secure boot off", attest.ReasonFirmware, "secure boot", fw(func(f *attest.Firmware) { f.SecureBoot = attest.No })},
		{"an image waits for a reset", attest.ReasonFirmware, "waits for a reset", fw(func(f *attest.Firmware) { f.Pending = "28.40.0001" })},
		{"rolled back below the fuses", attest.ReasonFirmware, "fuses", fw(func(f *attest.Firmware) { f.RollbackFloor = new(uint32(2)) })},
		{"a GUID set by a host", attest.ReasonFirmware, "GUID", func(_ *Attempt, h *attest.HCA) { h.AlternateGUID = attest.Yes }},
		{"G0 where G1 is demanded", attest.ReasonFirmware, "assurance G0", fw(func(f *attest.Firmware) { f.Assurance = attest.G0 })},
		{"no assurance", attest.ReasonFirmware, "assurance none", fw(func(f *attest.Firmware) { f.Assurance = attest.AssuranceNone })},
		{"G3 where G1 is demanded", attest.ReasonFirmware, "assurance G3", fw(func(f *attest.Firmware) { f.Assurance = attest.G3 })},
		{"G1 without an image", attest.ReasonFirmware, "reference image", fw(func(f *attest.Firmware) { f.Reference = nil })},
		{"G3 without a measurement", attest.ReasonFirmware, "measurement", func(a *Attempt, h *attest.HCA) {
			lower(a, attest.G3)
			h.Firmware.Assurance = attest.G3
		}},

		{"recovery mode", attest.ReasonDebug, "recovery", fw(func(f *attest.Firmware) { f.Recovery = attest.Yes })},
		{"debug firmware", attest.ReasonDebug, "debug", fw(func(f *attest.Firmware) { f.Attributes = []string{"secure-fw", "debug"} })},
		{"development firmware", attest.ReasonDebug, "dev", fw(func(f *attest.Firmware) { f.Attributes = []string{"secure-fw", "dev"} })},
		{"token session open", attest.ReasonDebug, "rmdt", func(_ *Attempt, h *attest.HCA) { h.Tokens[1].Session = attest.Yes }},
		{"token session unknown", attest.ReasonDebug, "rmdt", func(_ *Attempt, h *attest.HCA) { h.Tokens[1].Session = attest.Unknown }},

		{"version not read", attest.ReasonUnread, "firmware version", fw(func(f *attest.Firmware) { f.Pending = "" })},
		{"life cycle not read, and why", attest.ReasonUnread, "(kernel lockdown)", func(_ *Attempt, h *attest.HCA) {
			h.Firmware.LifeCycle = attest.LifeUnknown
			h.Unread = []attest.Unread{{Fact: "life_cycle", Reason: "kernel lockdown"}}
		}},
		{"secure boot not read", attest.ReasonUnread, "secure boot", fw(func(f *attest.Firmware) { f.SecureBoot = attest.Unknown })},
		{"recovery not read", attest.ReasonUnread, "recovery", fw(func(f *attest.Firmware) { f.Recovery = attest.Unknown })},
		{"attributes not read", attest.ReasonUnread, "attributes", fw(func(f *attest.Firmware) { f.Attributes = nil })},
		{"tokens not read", attest.ReasonUnread, "token", func(_ *Attempt, h *attest.HCA) { h.Tokens = nil }},
		{"alternate GUID not read", attest.ReasonUnread, "alternate GUID", func(_ *Attempt, h *attest.HCA) { h.AlternateGUID = attest.Unknown }},
		{"MLOCK not read", attest.ReasonUnread, "MLOCK", lock(func(l *attest.Lock) { l.MLOCK = attest.MLOCKUnknown })},
		{"settings not read", attest.ReasonUnread, "settings", lock(func(l *attest.Lock) { l.Items = nil })},

		{"nothing locked", attest.ReasonLock, "lock method none", lock(func(l *attest.Lock) { l.Method = attest.LockNone })},
		{"lock method unknown", attest.ReasonLock, "lock method unknown", lock(func(l *attest.Lock) { l.Method = attest.LockUnknown })},
		{"MLOCK open", attest.ReasonLock, "MLOCK is unlocked", lock(func(l *attest.Lock) { l.MLOCK = attest.MLOCKUnlocked })},
		{"MLOCK of another", attest.ReasonLock, "locked-host-config", lock(func(l *attest.Lock) { l.MLOCK = attest.MLOCKHostConfig })},
		{"key of no epoch", attest.ReasonLock, "epoch 0", lock(func(l *attest.Lock) { l.Epoch = 0 })},
		{"key of the epoch before", attest.ReasonLock, "epoch 1, the service knows 2", func(a *Attempt, _ *attest.HCA) { a.Expected.HCAs[0].Lock.Epoch = 2 }},
		{"no file", attest.ReasonLock, "no file", lock(func(l *attest.Lock) { l.File = nil })},
		{"another file", attest.ReasonLock, "not the one", func(a *Attempt, _ *attest.HCA) { a.Expected.HCAs[0].Lock.File = strings.Repeat("0", 64) }},
		{"SM_DISABLE off", attest.ReasonLock, "SM_DISABLE", lock(func(l *attest.Lock) { l.Items[0].Current, l.Items[0].Next = "00000000", "00000000" })},
		{"SM_DISABLE not on the device", attest.ReasonLock, "SM_DISABLE", lock(func(l *attest.Lock) { l.Items[0] = attest.Item{Index: 290, Supported: attest.No} })},
		{"SM_DISABLE of another size", attest.ReasonLock, "SM_DISABLE", lock(func(l *attest.Lock) { l.Items[0].Current, l.Items[0].Next = "80", "80" })},
		{"no items at all", attest.ReasonLock, "SM_DISABLE", lock(func(l *attest.Lock) { l.Items = []attest.Item{} })},
		{"off after the next reset", attest.ReasonLock, "after a reset", lock(func(l *attest.Lock) { l.Items[0].Next = "00000000" })},
		{"item not read", attest.ReasonLock, "SM_DISABLE", lock(func(l *attest.Lock) { l.Items[0].Current, l.Items[0].Next = "", "" })},
		{"a host may overwrite it", attest.ReasonLock, "ovr_en yes", lock(func(l *attest.Lock) { l.Items[0].Override = attest.Yes })},
		{"of USER priority", attest.ReasonLock, "priority USER", lock(func(l *attest.Lock) { l.Items[0].Priority = attest.PriorityUser })},
		{"item that may not be there", attest.ReasonLock, "whether the device has it", lock(func(l *attest.Lock) { l.Items[0].Supported = attest.Unknown })},
		{"a demanded item has another value", attest.ReasonLock, "0x00/290", func(a *Attempt, _ *attest.HCA) {
			a.Expected.HCAs[0].Lock.Items = []attest.ExpectedItem{{Index: 290, Mask: "40000000", Value: "40000000"}}
		}},
		{"a demanded item is missing", attest.ReasonLock, "0x07/131 port 0 host 1", func(a *Attempt, _ *attest.HCA) {
			a.Expected.HCAs[0].Lock.Items = []attest.ExpectedItem{{Class: 7, Index: 131, Host: 1, Mask: "30000000", Value: "10000000"}}
		}},
		{"SMPs leave port 2", attest.ReasonLock, "port 2: probe with an SMP: open", func(_ *Attempt, h *attest.HCA) { h.Ports[1].Firewall = attest.FirewallOpen }},
		{"port 1 was not probed", attest.ReasonLock, "port 1: probe with an SMP: unknown", func(_ *Attempt, h *attest.HCA) { h.Ports[0].Firewall = attest.FirewallUnknown }},
	}
}
