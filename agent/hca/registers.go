package hca

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"portcullis/agent/hca/register"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
)

// firmware reads a device's registers into its facts.
type firmware struct {
	*Device
	access   Access
	from     Source
	function uint8 // of the PCI address
}

func (f *firmware) read(ctx context.Context) {
	f.identity(ctx)
	f.versions(ctx)
	f.components(ctx)
	f.lock(ctx)
	f.tokens(ctx)
	f.alternate(ctx)
	f.burned(ctx)
	f.ports(ctx)
}

// identity reads MGIR.
func (f *firmware) identity(ctx context.Context) {
	m, err := Read(ctx, f.access, register.MGIR{})
	if err != nil {
		f.failIdentity(err)
		return
	}
	f.keep(m)
	f.DeviceID.add(f.from, DeviceID(m.Hardware.DeviceID))
	f.HardwareID.add(f.from, DeviceID(m.Hardware.HWDevID))
	f.Recovery.add(f.from, answer(m.Hardware.Recovery()))
	f.BaseMAC.told(f.from, MAC(m.Hardware.BaseMAC))
	psid := register.Text(m.Firmware.PSID[:])
	if !printable(psid) {
		psid = strconv.Quote(psid)
	}
	f.PSID.add(f.from, psid)
	f.Running.add(f.from, Version{m.Firmware.Major, m.Firmware.Minor, m.Firmware.SubMinor})
	f.SecureBoot.add(f.from, answer(m.Firmware.SecureBoot))
	f.Encryption.add(f.from, answer(m.Firmware.Encryption))
	f.Development.add(f.from, answer(m.Firmware.DevState))
	f.Attributes.add(f.from, words(m.Firmware))
	if life, ok := lifeCycle(m.Hardware.HWDevID, m.Firmware.LifeCycle()); ok {
		f.LifeCycle.add(f.from, life)
	} else {
		f.LifeCycle.miss(ReasonUnreadable, fmt.Sprintf("MGIR: life cycle %d of a chip with hardware id 0x%04x has no known meaning", m.Firmware.LifeCycle(), m.Hardware.HWDevID))
	}
}

func (f *firmware) failIdentity(err error) {
	f.DeviceID.fail(err)
	f.HardwareID.fail(err)
	f.Recovery.fail(err)
	f.BaseMAC.fail(err)
	f.PSID.fail(err)
	f.Running.fail(err)
	f.SecureBoot.fail(err)
	f.Encryption.fail(err)
	f.Development.fail(err)
	f.Attributes.fail(err)
	f.LifeCycle.fail(err)
}

// keep remembers a register as it was read, without what changes by itself.
func (f *firmware) keep(m register.MGIR) {
	m.Hardware.Uptime = 0
	if b, err := register.Encode(m); err == nil {
		f.Registers = append(f.Registers, b...)
	}
}

// words are the security attributes in the words of the vendor's tools, as far
// as MGIR has bits for them.
func words(fw register.FirmwareInfo) string {
	var w []string
	switch {
	case fw.Secured:
		w = append(w, wordSecure)
	case fw.SignedFW:
		w = append(w, "signed-fw")
	}
	if fw.Debug {
		w = append(w, "debug")
	}
	if fw.Dev || fw.DevSC {
		w = append(w, "dev")
	}
	return strings.Join(w, wordSeparator)
}

const (
	wordSecure    = "secure-fw" // takes no firmware that is not signed
	wordSeparator = ", "
)

// Chips by their hardware id: which table of life cycles they have.
var (
	chipsFS4 = []uint16{
		0x20D, 0x20F, 0x212, 0x216, 0x218, // ConnectX-5, 6, 6 Dx, 6 Lx, 7
		0x211, 0x214, 0x21C, // BlueField, BlueField-2, BlueField-3
	}
	chipsFS5 = []uint16{0x21E, 0x224} // ConnectX-8, ConnectX-9 and BlueField-4
)

// lifeCycle returns the meaning that a number has on this chip.
func lifeCycle(chip uint16, n register.LifeCycle) (life attest.LifeCycle, ok bool) {
	switch {
	case slices.Contains(chipsFS4, chip):
		life, ok = map[register.LifeCycle]attest.LifeCycle{
			register.Production: attest.LifeProduction, register.GASecured: attest.LifeGASecured,
			register.GANonSecured: attest.LifeGANonSecured, register.RMA: attest.LifeRMA,
		}[n]
	case slices.Contains(chipsFS5, chip):
		life, ok = map[register.LifeCycle]attest.LifeCycle{
			register.FS5Blank: attest.LifeProduction, register.FS5PreProduction: attest.LifePreProduction,
			register.FS5Production: attest.LifeGASecured, register.FS5FailureAnalysis: attest.LifeRMA,
		}[n]
	}
	return life, ok
}

// versions reads MFSV.
func (f *firmware) versions(ctx context.Context) {
	m, err := Read(ctx, f.access, register.MFSV{})
	if err != nil {
		f.SecurityVersion.fail(err)
		f.RollbackFloor.fail(err)
		return
	}
	if b, err := register.Encode(m); err == nil {
		f.Registers = append(f.Registers, b...)
	}
	f.SecurityVersion.add(f.from, Number(m.Image))
	f.RollbackFloor.add(f.from, Number(m.EFUSE))
}

// maxComponents bounds the walk through MCQS.
const maxComponents = 64

// components finds out whether another boot image waits for a reset.
func (f *firmware) components(ctx context.Context) {
	boot, err := f.bootImage(ctx)
	if err != nil {
		f.Pending.fail(err)
		return
	}
	v, err := f.imageVersion(ctx, boot.Index, true)
	nothing := errors.Is(err, register.ErrBadParameter)
	switch {
	case err == nil:
		f.Pending.add(f.from, v)
	case nothing && boot.State == register.ComponentActivePendingReset:
		f.Pending.miss(ReasonUnreadable, "a boot image waits for a reset and the firmware does not say which")
	case nothing:
		if v, err = f.imageVersion(ctx, boot.Index, false); err != nil {
			f.Pending.fail(err)
			return
		}
		f.Running.add(f.from, v)
		f.Pending.add(f.from, v)
	default:
		f.Pending.fail(err)
	}
}

var errNoBootImage = errors.New("MCQS: no boot image among the components")

func (f *firmware) bootImage(ctx context.Context) (register.MCQS, error) {
	for i := range uint16(maxComponents) {
		m, err := Read(ctx, f.access, register.MCQS{Index: i})
		if err != nil {
			return m, err
		}
		if m.Identifier == register.BootImage && m.Index == i {
			return m, nil
		}
		if m.Last {
			break
		}
	}
	return register.MCQS{}, errNoBootImage
}

func (f *firmware) imageVersion(ctx context.Context, index uint16, pending bool) (Version, error) {
	var property register.ComponentVersion
	m, err := Read(ctx, f.access, register.MCQI{
		Index: index, Pending: pending, Type: register.Version, DataSize: uint16(property.Size()),
	})
	if err != nil {
		return Version{}, err
	}
	if int(m.DataSize) < property.Size() {
		return Version{}, fmt.Errorf("MCQI: version of %d bytes, want %d", m.DataSize, property.Size())
	}
	if property, err = register.Decode[register.ComponentVersion](m.Data[:]); err != nil {
		return Version{}, err
	}
	return ParseVersion(register.Text(property.Text[:]))
}

// lock reads MLOCK.
func (f *firmware) lock(ctx context.Context) {
	m, err := Read(ctx, f.access, register.MLOCK{})
	if err != nil {
		f.MLOCK.fail(err)
		return
	}
	f.MLOCK.add(f.from, m.State)
}

// tokens reads MDSR of every kind. A kind that the firmware does not know is
// left out, unless it knows none.
func (f *firmware) tokens(ctx context.Context) {
	var all, unknown []Token
	for _, kind := range register.Sessions() {
		t := Token{Kind: kind}
		m, err := Read(ctx, f.access, register.MDSR{Type: kind})
		switch {
		case errors.Is(err, register.ErrBadParameter):
			t.Session.miss(ReasonNotSupported, err.Error())
			unknown = append(unknown, t)
			continue
		case err != nil:
			t.Session.fail(err)
		case m.Type != kind:
			t.Session.miss(ReasonUnreadable, fmt.Sprintf("MDSR: asked for %v sessions, the answer is about %v", kind, m.Type))
		default:
			f.session(&t, m)
		}
		all = append(all, t)
	}
	if len(all) == 0 {
		all = unknown
	}
	f.Tokens = all
}

// session judges the status of a session. One that ended by itself, or never
// was, is none; "ended" answers to a question only if it says that there is none.
func (f *firmware) session(t *Token, m register.MDSR) {
	none := m.Status.Clean() || m.Status == register.SessionEnded && m.Info == register.InfoNoSession
	open := m.Status == register.SessionActive || m.Status == register.SessionChallenged ||
		m.Info == register.InfoSessionActive
	switch {
	case open:
		t.Session.add(f.from, attest.Yes)
	case none:
		t.Session.add(f.from, attest.No)
	default:
		t.Session.miss(ReasonRefused, fmt.Sprintf("MDSR: status %d, info %d", m.Status, m.Info))
	}
}

// Item nv_virt_guid_addr: the GUID that the host assigned to a function.
const (
	alternateIndex  = 273
	alternateLength = 12
	alternateOn     = 0x80 // in the first byte
)

// alternate reads whether the host assigned another GUID to its function, now or from the next boot on.
func (f *firmware) alternate(ctx context.Context) {
	address := nvconfig.FunctionItem(0, f.function, alternateIndex)
	known, err := Read(ctx, f.access, register.MNVQC{Type: uint32(address)})
	if err != nil {
		f.hidden(&f.AlternateGUID, err)
		return
	}
	if !known.CanRead && !known.CanWrite {
		f.AlternateGUID.add(f.from, attest.No) // there is no such setting
		return
	}
	can, err := Read(ctx, f.access, register.MNVGC{})
	if err != nil {
		f.hidden(&f.AlternateGUID, err)
		return
	}
	modes := []nvconfig.Access{nvconfig.Next}
	if can.ReadsCurrent {
		modes = append(modes, nvconfig.Current)
	}
	on := false
	for _, mode := range modes {
		data, err := f.item(ctx, address, mode, alternateLength)
		if err != nil {
			f.hidden(&f.AlternateGUID, err)
			return
		}
		on = on || data[0]&alternateOn != 0
	}
	f.AlternateGUID.add(f.from, answer(on))
}

// hidden is fail, except for a locked device, which hides its settings.
func (f *firmware) hidden(fact *Fact[attest.Answer], err error) {
	if f.MLOCK.is(register.Locked) && errors.Is(err, register.ErrNotSupported) {
		fact.miss(ReasonLocked, "settings cannot be read while MLOCK locks the adapter: "+err.Error())
		return
	}
	fact.fail(err)
}

// item reads a setting through MNVDA.
func (f *firmware) item(ctx context.Context, a nvconfig.Address, mode nvconfig.Access, length int) ([]byte, error) {
	h := nvconfig.Header{Access: mode, Address: a}
	in := append(h.Append(nil, length), make([]byte, length)...)
	out, err := f.access.Access(ctx, register.IDMNVDA, register.Read, in)
	if err != nil {
		return nil, err
	}
	got, _, err := nvconfig.ParseItem(out)
	if err != nil {
		return nil, fmt.Errorf("MNVDA: %w", err)
	}
	if got.Address != a || len(got.Data) != length {
		return nil, fmt.Errorf("MNVDA: asked for %d bytes of %v, the answer has %d of %v", length, a, len(got.Data), got.Address)
	}
	return got.Data, nil
}

var errNoVports = errors.New("this access to the firmware carries only registers, not commands")

// ports asks the firmware for its own view of each port.
func (f *firmware) ports(ctx context.Context) {
	vports, ok := f.access.(Vports)
	for i := range f.Ports {
		p := &f.Ports[i]
		if !ok {
			p.HasSMI.miss(ReasonNoAccess, errNoVports.Error())
			continue
		}
		v, err := vports.VportContext(ctx, f.vport(p.Num))
		if err != nil {
			p.HasSMI.fail(err)
			p.GUID.fail(err)
			continue
		}
		p.HasSMI.add(f.from, answer(v.HasSMI))
		p.GUID.add(f.from, v.PortGUID)
		f.NodeGUID.add(f.from, v.NodeGUID)
		f.SystemImageGUID.add(f.from, v.SystemImageGUID)
	}
}

// vport is the number by which the function knows its port.
func (f *firmware) vport(n ib.PortNum) uint8 { return uint8(n) }

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
