package attest

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// smDisable is the item nv_host_sm_conf (class 0, index 290), whose highest bit
// is SM_DISABLE: the host may not send SMPs. It is the SMP firewall.
const (
	smDisableClass = 0
	smDisableIndex = 290
	smDisableBit   = 0x80 // of byte 0
)

// secureWord is the one attribute word that a device may show: it takes signed
// firmware only.
const secureWord = "secure-fw"

// findings are what is wrong with one adapter, by reason.
type findings struct {
	name   string
	reason Reason
	list   []string
}

func (f *findings) when(bad bool, format string, args ...any) {
	if bad {
		f.list = append(f.list, fmt.Sprintf(format, args...))
	}
}

// refusal returns the findings as one refusal, or nil if there are none.
func (f *findings) refusal() *Refusal {
	if len(f.list) == 0 {
		return nil
	}
	return refuse(f.reason, "HCA %s: %s", f.name, strings.Join(f.list, "; "))
}

// checkAdapters wants of each adapter what the policy demands: that its facts
// were read, no debug or recovery, firmware assured enough, settings locked.
func (v *verifier) checkAdapters() *Refusal {
	return checkAdapters(v.statement, v.pol, v.exp.lockOf)
}

func checkAdapters(s *Statement, pol *Policy, lockOf func(*HCA) ExpectedLock) *Refusal {
	for i := range s.HCAs {
		h := &s.HCAs[i]
		if !pol.AcceptDPU {
			if r := h.dpu().refusal(); r != nil {
				return r
			}
		}
		if pol.Assurance != AssuranceNone {
			for _, f := range []*findings{h.unread(pol), h.debug(), h.assured(pol.Assurance)} {
				if r := f.refusal(); r != nil {
					return r
				}
			}
		}
		if pol.RequireLock {
			if r := h.locked(lockOf(h)).refusal(); r != nil {
				return r
			}
		}
	}
	return nil
}

// Chips with a processor of their own that shares the adapter with the host: by PCI device id, and by the hardware id that
// the firmware reports (firmware-images.md section 4.4).
var (
	dpuDevices  = []uint16{0xA2D2, 0xA2D6, 0xA2DC, 0xA2DF} // BlueField, -2, -3, -4
	dpuHardware = []uint16{0x211, 0x214, 0x21C, 0x220}
)

// DPU reports whether the adapter is known to be a DPU.
func (h *HCA) DPU() bool {
	return slices.Contains(dpuDevices, h.DeviceID) || slices.Contains(dpuHardware, h.HardwareID)
}

// dpu finds a DPU. The host's evidence does not show the software of the DPU's own processor, and that processor can do to
// the adapter what the host must not.
func (h *HCA) dpu() *findings {
	f := &findings{name: h.Name, reason: ReasonDPU}
	f.when(h.DPU(),
		"is a DPU (device id 0x%04x, hardware id 0x%03x), and the software of its own processor is not attested", h.DeviceID, h.HardwareID)
	return f
}

// unread finds facts that the policy requires and that could not be read. They make the adapter not compliant, with a
// reason of their own.
func (h *HCA) unread(pol *Policy) *findings {
	f := &findings{name: h.Name, reason: ReasonUnread}
	fw := &h.Firmware
	f.when(h.DeviceID == 0 && h.HardwareID == 0, "chip not known%s", h.why("device_id"))
	f.when(fw.Running == "" || fw.Pending == "", "firmware version not known%s", cmp.Or(h.why("running"), h.why("pending")))
	f.when(fw.LifeCycle == LifeUnknown, "life cycle not known%s", h.why("life_cycle"))
	f.when(fw.SecureBoot == Unknown, "secure boot not known%s", h.why("secure_boot"))
	f.when(fw.Recovery == Unknown, "recovery mode not known%s", h.why("recovery"))
	f.when(fw.Attributes == nil, "security attributes not known%s", h.why("attributes"))
	f.when(h.Tokens == nil, "token sessions not known%s", h.why("tokens"))
	f.when(h.AlternateGUID == Unknown, "alternate GUID not known%s", h.why("alternate_guid"))
	if pol.RequireLock {
		f.when(h.Lock.MLOCK == MLOCKUnknown, "MLOCK not known%s", h.why("mlock"))
		f.when(h.Lock.Items == nil, "settings not known%s", h.why("items"))
	}
	return f
}

// why returns the agent's reason for not having read a fact.
func (h *HCA) why(fact string) string {
	i := slices.IndexFunc(h.Unread, func(u Unread) bool { return u.Fact == fact })
	if i < 0 {
		return ""
	}
	return " (" + h.Unread[i].Reason + ")"
}

func (h *HCA) debug() *findings {
	f := &findings{name: h.Name, reason: ReasonDebug}
	f.when(h.Firmware.Recovery != No, "runs in recovery mode")
	for i, word := range h.Firmware.Attributes {
		f.when(i > 0 || word != secureWord && word != "signed-fw", "reports the attribute %q", word)
	}
	for _, t := range h.Tokens {
		f.when(t.Session != No, "token session %s: %v, want none", t.Kind, t.Session)
	}
	return f
}

// covers reports whether level a is good enough where want is demanded. G3 rests
// on G0, not on a reference image.
func (a Assurance) covers(want Assurance) bool {
	return a >= want && (a != G3 || want == G3 || want == G0)
}

func (h *HCA) assured(want Assurance) *findings {
	f := &findings{name: h.Name, reason: ReasonFirmware}
	fw := &h.Firmware
	f.when(fw.LifeCycle != LifeGASecured, "life cycle %v, want %v", fw.LifeCycle, LifeGASecured)
	f.when(fw.SecureBoot != Yes, "secure boot is not enabled")
	f.when(!slices.Contains(fw.Attributes, secureWord), "does not require signed firmware")
	f.when(fw.Running != fw.Pending, "runs %s, and %s waits for a reset", fw.Running, fw.Pending)
	f.when(fw.SecurityVersion != nil && fw.RollbackFloor != nil && *fw.SecurityVersion < *fw.RollbackFloor, "security version is below the floor in its fuses")
	f.when(h.AlternateGUID != No, "a GUID set by the host replaces that of manufacture")
	f.when(!fw.Assurance.covers(want), "assurance %v, want %v", fw.Assurance, want)
	f.when((fw.Assurance == G1 || fw.Assurance == G2) && fw.Reference == nil, "assurance %v without a reference image", fw.Assurance)
	f.when(fw.Assurance == G3 && h.SPDM == "", "assurance %v without a measurement", fw.Assurance)
	return f
}

// lockOf returns the service's data about the lock of an adapter.
func (e Expected) lockOf(h *HCA) ExpectedLock {
	for _, x := range e.HCAs {
		if x.NodeGUID == h.NodeGUID {
			return x.Lock
		}
	}
	return ExpectedLock{}
}

// locked wants settings that no host can change, SMPs that do not leave, and a
// lock whose key the service has.
func (h *HCA) locked(want ExpectedLock) *findings {
	f := &findings{name: h.Name, reason: ReasonLock}
	l := &h.Lock
	f.when(l.Method != LockSignedFile && l.Method != LockWrites, "lock method %v", l.Method)
	f.when(l.Method == LockSignedFile && l.File == nil, "no file was applied")
	f.when(want.Leaves, "the adapter leaves by decision of an operator: it must be opened")
	f.when(l.MLOCK != MLOCKLocked, "MLOCK is %v", l.MLOCK)
	f.when(l.Epoch == 0 || want.Epoch != 0 && l.Epoch != want.Epoch, "locked under a key of epoch %d, the service knows %d", l.Epoch, want.Epoch)
	f.when(want.File != "" && (l.File == nil || l.File.SHA256 != want.File), "the applied file is not the one the service signed")
	firewall := false
	for i := range l.Items {
		it := &l.Items[i]
		firewall = firewall || it.firewall()
		it.locked(f, l.Method)
	}
	f.when(!firewall, "SM_DISABLE is not set: the host may send SMPs")
	for _, w := range want.Items {
		f.when(!slices.ContainsFunc(l.Items, w.met), "item %v is not %s", &Item{Class: w.Class, Index: w.Index, Port: w.Port, Host: w.Host, Function: w.Function}, w.Value)
	}
	for _, p := range h.Ports {
		if p.LinkLayer == LinkInfiniBand {
			f.when(p.Firewall != FirewallBlocks, "port %d: probe with an SMP: %v", p.Num, p.Firewall)
		}
	}
	return f
}

// locked wants an item of which nothing waits, and that no host may overwrite
// where a signed file is what protects it.
func (i *Item) locked(f *findings, m LockMethod) {
	if i.Supported == No {
		return
	}
	f.when(i.Supported != Yes, "item %v: not known whether the device has it", i)
	f.when(i.Current == "" || i.Current != i.Next, "item %v is %q now and %q after a reset", i, i.Current, i.Next)
	// The profile says which of the other items must be locked (Expected.Items, and the code that judges settings). The
	// host may own some of them.
	f.when(m == LockSignedFile && i.isFirewall() && (i.Priority != PriorityOEM && i.Priority != PriorityMLNX || i.Override != No),
		"item %v has priority %v and ovr_en %v: a host can overwrite it", i, i.Priority, i.Override)
}

// isFirewall reports whether the item is that of SM_DISABLE.
func (i *Item) isFirewall() bool { return i.Class == smDisableClass && i.Index == smDisableIndex }

// firewall reports whether the item is SM_DISABLE, set.
func (i *Item) firewall() bool {
	b, err := hex.DecodeString(i.Current)
	return i.isFirewall() && i.Supported == Yes &&
		err == nil && len(b) == 4 && b[0]&smDisableBit != 0
}

// met reports whether an item has the bits that are wanted.
func (w ExpectedItem) met(i Item) bool {
	if i.compare(&Item{Class: w.Class, Index: w.Index, Port: w.Port, Host: w.Host, Function: w.Function}) != 0 {
		return false
	}
	got, err := hex.DecodeString(i.Current)
	mask, errMask := hex.DecodeString(w.Mask)
	value, errValue := hex.DecodeString(w.Value)
	if err != nil || errMask != nil || errValue != nil || len(got) != len(mask) || len(got) != len(value) {
		return false
	}
	for n := range got {
		if got[n]&mask[n] != value[n]&mask[n] {
			return false
		}
	}
	return true
}

// IsAssured reports whether the firmware of the adapter is assured as well as a policy with that demand wants, and neither debugged
// nor in recovery. What was not read does not count as good.
func (h *HCA) IsAssured(want Assurance) bool {
	return len(h.unread(&Policy{}).list) == 0 && len(h.debug().list) == 0 && len(h.assured(want).list) == 0
}

// IsLocked reports whether the settings of the adapter are locked, and its SMP firewall is on, as a policy that demands locks wants.
func (h *HCA) IsLocked() bool {
	return len(h.unread(&Policy{RequireLock: true}).list) == 0 && len(h.locked(ExpectedLock{}).list) == 0
}
