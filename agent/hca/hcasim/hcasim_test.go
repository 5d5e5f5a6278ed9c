package hcasim

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
)

func TestIdentity(t *testing.T) {
	l := open(t)
	m := get(l, register.MGIR{})
	if m.Hardware.DeviceID != 0x1021 || m.Hardware.Recovery() || m.Hardware.BaseMAC != 0xb83fd2123400 || m.Hardware.Ports != 2 {
		t.Errorf("hardware %+v", m.Hardware)
	}
	f := m.Firmware
	if f.Major != 28 || f.Minor != 43 || f.SubMinor != 1014 || register.Text(f.PSID[:]) != testPSID ||
		f.LifeCycle() != register.GASecured || !f.SecureBoot || !f.Secured || !f.SignedFW || f.Debug || f.Dev {
		t.Errorf("firmware %+v", f)
	}
	for group, want := range map[uint8][]register.ID{0: {register.IDMGIR, register.IDMCC, register.IDMQIS}, 2: {register.IDMFSV, register.IDMDSR}} {
		mcam := get(l, register.MCAM{Group: group})
		for _, id := range want {
			if !mcam.Has(id) {
				t.Errorf("MCAM lacks %v", id)
			}
		}
		if !mcam.HasFeature(register.FeatureChallengeTokens) || mcam.Has(0x9023) {
			t.Errorf("MCAM %+v", mcam)
		}
	}
	if _, status := do(l, register.Read, register.MCAM{Group: 4}); status != register.BadParameter {
		t.Errorf("group 4: %v", status)
	}
	name := []byte{}
	for {
		piece := get(l, register.MQIS{Type: register.InfoModelName, Length: 8, Offset: uint16(len(name))})
		if name = append(name, piece.Data[:piece.Length]...); piece.Length < 8 || len(name) >= int(piece.Total) {
			break
		}
	}
	if string(name) != "MCX75310AAS-NEA_Ax\x00" {
		t.Errorf("name %q", name)
	}
	if piece := get(l, register.MQIS{Type: register.InfoVPD, Length: 8, Offset: 9}); piece.Total != 0 || piece.Length != 0 {
		t.Errorf("a string that is not there: %+v", piece)
	}
	if _, status := do(l, register.Read, register.MQIS{Type: 77}); status != register.BadParameter {
		t.Errorf("string 77: %v", status)
	}
	recovery := open(t, func(o *Options) { o.Identity.DeviceID = o.Identity.HWDevID })
	if !get(recovery, register.MGIR{}).Hardware.Recovery() {
		t.Error("a card in recovery mode does not show it")
	}
}

// TestFuses checks that the fuses follow the firmware at a boot, if a command or the configuration enables it.
func TestFuses(t *testing.T) {
	l := open(t, func(o *Options) { o.Firmware.SecurityVersion, o.Security.EFUSE = 3, 1 })
	if m := get(l, register.MFSV{}); m.Image != 3 || m.EFUSE != 1 || m.Stat != fuseLower {
		t.Errorf("MFSV %+v", m)
	}
	do(l, register.Write, register.MFSV{ProgramEnabled: true})
	if m := get(l, register.MFSV{}); !m.ProgramEnabled || m.EFUSE != 1 {
		t.Errorf("told to: %+v", m)
	}
	l.card.Reset()
	if m := get(l, register.MFSV{}); m.ProgramEnabled || m.EFUSE != 3 || m.Stat != fuseEqual {
		t.Errorf("after the boot: %+v", m)
	}
	auto := open(t, func(o *Options) { o.Firmware.SecurityVersion, o.Security.Automatic = 2, true })
	if m := get(auto, register.MFSV{}); m.EFUSE != 2 || !m.Automatic {
		t.Errorf("automatic: %+v", m)
	}
	if _, status := do(l, register.Read, register.MFSV{Index: 1}); status != register.BadParameter {
		t.Errorf("fuses of something else: %v", status)
	}
}

// A reset that the driver is to make happens when its command is answered; one
// that waits for the host does not.
func TestResetByRegister(t *testing.T) {
	l := open(t)
	told := 0
	l.card.OnReset(func() { told++; l.card.SMPFirewall() })
	l.write(smConf, on)
	if _, status := do(l, register.Write, register.MFRL{Trigger: register.PCIeLink | register.WarmReboot}); status != register.OK || told != 0 {
		t.Errorf("without the driver: %v, %d resets", status, told)
	}
	l.isOn(false, true)
	if _, status := do(l, register.Write, register.MFRL{Trigger: register.PCIeLink, Sync: syncDriver}); status != register.OK || told != 1 {
		t.Errorf("with the driver: %v, %d resets", status, told)
	}
	l.isOn(true, true)
	l.card.Reset()
	if told != 1 || l.card.Resets() != 3 {
		t.Errorf("told of %d resets of %d", told, l.card.Resets())
	}
	for _, bad := range []register.MFRL{{}, {Trigger: register.LivePatch}, {Trigger: register.PCIeLink, Type: 1}, {Trigger: register.PCIeLink, Sync: 2}} {
		if _, status := do(l, register.Write, bad); status != register.BadParameter {
			t.Errorf("%+v: %v", bad, status)
		}
	}
	if m := get(l, register.MFRL{}); m.Trigger&register.PCIeLink == 0 || m.State != 0 {
		t.Errorf("MFRL %+v", m)
	}
}

func (l lab) vport(q register.VportQuery, room int) register.Answer {
	l.Helper()
	reply, err := l.card.RPC(register.RPC{Scope: register.DebugReadOnly, In: q.Encode(), Room: register.HeaderSize + room})
	if err != nil || reply.Errno != 0 {
		l.Fatalf("%v: error number %d, %v", q, reply.Errno, err)
	}
	answer, err := register.DecodeAnswer(reply.Out)
	if err != nil {
		l.Fatal(err)
	}
	return answer
}

func (l lab) context(port uint8) register.VportContext {
	l.Helper()
	a := l.vport(register.VportQuery{Opcode: register.QueryHCAVportContext, Vport: register.Vport{Port: port}}, register.VportContext{}.Size())
	v, err := register.Decode[register.VportContext](a.Data)
	if err != nil || a.Status != register.OK {
		l.Fatal(a.Status, err)
	}
	return v
}

func TestVport(t *testing.T) {
	table := []ib.PKey{0x8123, 0x7FFF, 0}
	l := open(t, func(o *Options) {
		o.Live = func(port int) Live {
			return Live{State: 4, Physical: 5, LID: ib.LID(port + 10), SMLID: 1, PKeys: table}
		}
	})
	v := l.context(2)
	if !v.HasSMI || v.PortGUID != portGUID || v.NodeGUID != nodeGUID || v.LID != 12 || v.PortState != 4 {
		t.Errorf("context %+v", v)
	}
	l.write(smConf, on)
	alternate := append([]byte{0x80, 0, 0, 0}, 1, 2, 3, 4, 5, 6, 7, 8)
	l.write(nvconfig.FunctionItem(0, 1, virtualGUIDIndex), alternate)
	l.card.Reset()
	if v := l.context(2); v.HasSMI || v.PortGUID != 0x0102030405060708 || v.NodeGUID != nodeGUID {
		t.Errorf("with firewall and another GUID: %+v", v)
	}
	if v := l.context(1); v.PortGUID != nodeGUID {
		t.Errorf("port 1 has %v", v.PortGUID)
	}
	keys := register.VportQuery{Opcode: register.QueryHCAVportPKey, Vport: register.Vport{Port: 1}, Index: register.WholeTable}
	a := l.vport(keys, register.PKeyRoom(register.MaxPKeys))
	got, err := register.DecodePKeys(a.Data)
	if err != nil || !slices.Equal(got[:3], table) {
		t.Errorf("P_Keys %v, %v", got, err)
	}
	if a := l.vport(keys, 4); a.Status != register.BadOutputLength {
		t.Errorf("no room: %v", a.Status)
	}
	keys.Index = 1
	if a := l.vport(keys, 4); a.Status != register.OK || !bytes.Equal(a.Data, []byte{0, 0, 0x7F, 0xFF}) {
		t.Errorf("entry 1: %+v", a)
	}
	keys.Index = 3
	if a := l.vport(keys, 4); a.Status != register.BadIndex {
		t.Errorf("entry 3: %v", a.Status)
	}
	for _, bad := range []register.Vport{{}, {Port: 3}, {Port: 1, Other: true}} {
		if a := l.vport(register.VportQuery{Opcode: register.QueryHCAVportContext, Vport: bad}, 512); a.Status != register.BadParameter {
			t.Errorf("%+v: %v", bad, a.Status)
		}
	}
	keeps := open(t, traits(func(x *Traits) { x.KeepsSMI, x.LetsSMPs = true, true }))
	keeps.write(smConf, on)
	keeps.card.Reset()
	if v := keeps.context(1); !v.HasSMI || v.PortState != portDown || keeps.card.SMPFirewall() {
		t.Errorf("a card that only says so: %+v", v)
	}
}

// The driver's side lets commands through by opcode and scope.
func TestDriver(t *testing.T) {
	l := open(t)
	read := register.Access{ID: register.IDMLOCK, Method: register.Read, Data: make([]byte, 16)}
	write := register.Access{ID: register.IDMNVIA, Method: register.Write, Data: make([]byte, 8)}
	keys := register.VportQuery{Opcode: register.QueryHCAVportPKey, Vport: register.Vport{Port: 1}, Index: 0}
	user := read.Encode()
	user[0], user[1] = 0x0B, 0x0C
	for _, tt := range []struct {
		name  string
		in    []byte
		scope register.Scope
		room  int
		want  uint32
	}{
		{"write, configuration", write.Encode(), register.Configuration, 24, 0},
		{"read, configuration", read.Encode(), register.Configuration, 32, errnoBadMessage},
		{"read, debug", read.Encode(), register.DebugReadOnly, 32, 0},
		{"read, more than debug", read.Encode(), register.DebugWriteFull, 32, 0},
		{"read, no scope", read.Encode(), 4, 32, errnoBadMessage},
		{"the variant for users", user, register.DebugReadOnly, 32, 0},
		{"P_Keys, configuration", keys.Encode(), register.Configuration, 20, errnoBadMessage},
		{"P_Keys, debug", keys.Encode(), register.DebugReadOnly, 20, 0},
		{"no room for the header", read.Encode(), register.DebugReadOnly, 15, errnoLength},
		{"no header", read.Encode()[:15], register.DebugReadOnly, 32, errnoLength},
		{"another opcode", make([]byte, 16), register.DebugWriteFull, 16, errnoBadMessage},
	} {
		reply, err := l.card.RPC(register.RPC{Scope: tt.scope, In: tt.in, Room: tt.room})
		if err != nil || reply.Errno != tt.want || tt.want == 0 && len(reply.Out) != tt.room {
			t.Errorf("%s: error number %d, %d bytes, %v; want %d", tt.name, reply.Errno, len(reply.Out), err, tt.want)
		}
	}
	for a, want := range map[register.ID]register.Status{0x9023: register.BadSystemState, register.IDMNVIA: register.BadOperation} {
		if got := l.rpc(register.Access{ID: a, Method: register.Read, Data: make([]byte, 8)}).Status; got != want {
			t.Errorf("read %v: %v, want %v", a, got, want)
		}
	}
	if got := l.rpc(register.Access{ID: register.IDMGIR, Method: register.Read, Data: make([]byte, 8)}).Status; got != register.BadInputLength {
		t.Errorf("a short MGIR: %v", got)
	}
	if got := l.rpc(register.Access{ID: register.IDMLOCK, Method: 7, Data: make([]byte, 16)}).Status; got != register.BadOperation {
		t.Errorf("method 7: %v", got)
	}
}

// Each fault hits the commands it fits, when and as often as it is to.
func TestFaults(t *testing.T) {
	read := register.RPC{Scope: register.DebugReadOnly, In: register.Access{ID: register.IDMGIR, Method: register.Read, Data: make([]byte, 0xA0)}.Encode(), Room: 0xB0}
	write := register.RPC{In: nvconfig.Item{Header: nvconfig.Header{Address: smConf, OverrideEnabled: true}, Data: on}.Append(
		register.Access{ID: register.IDMNVDA, Method: register.Write}.Encode()), Room: 32}
	for _, tt := range []struct {
		name string
		f    Fault
		rpc  register.RPC
		want string // of the reply
		done bool   // the write has been done
	}{
		{"busy", Fault{Kind: Refusal, Status: register.Busy, ID: register.IDMNVDA}, write, "busy", false},
		{"timeout", Fault{Kind: Timeout, ID: register.IDMNVDA}, write, "errno 110", false},
		{"lost reply", Fault{Kind: LostReply, ID: register.IDMNVDA}, write, "errno 110", true},
		{"silence", Fault{Kind: Silence, ID: register.IDMNVDA}, write, "silent", false},
		{"power loss", Fault{Kind: PowerLoss, ID: register.IDMNVDA}, write, "power", false},
		{"another register", Fault{Kind: PowerLoss, ID: register.IDMLOCK}, write, "ok", true},
		{"another method", Fault{Kind: PowerLoss, ID: register.IDMNVDA, Method: register.Read}, write, "ok", true},
		{"any command", Fault{Kind: Refusal, Status: register.Busy}, read, "busy", false},
		{"short", Fault{Kind: WrongLength}, read, "172 bytes", false},
		{"lying", Fault{Kind: Lying, Lie: func(p []byte) { p[0x20+0x27] = 99 }}, read, "version 99", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := open(t)
			l.card.Inject(tt.f)
			if got := describe(l.card.RPC(tt.rpc)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			l.card.Heal()
			l.isOn(false, tt.done)
			if got := describe(l.card.RPC(tt.rpc)); got != "ok" {
				t.Errorf("healed: %s", got)
			}
		})
	}
	l := open(t)
	l.card.Inject(Fault{Kind: Refusal, Status: register.Busy, After: 2, Times: 2})
	got := []string{}
	for range 6 {
		got = append(got, describe(l.card.RPC(read)))
	}
	if want := []string{"ok", "ok", "busy", "busy", "ok", "ok"}; !slices.Equal(got, want) {
		t.Errorf("after 2, twice: %v", got)
	}
}

// describe says what a reply is, in a word.
func describe(r register.Reply, err error) string {
	switch {
	case errors.Is(err, ErrSilent):
		return "silent"
	case errors.Is(err, ErrPowerLost):
		return "power"
	case r.Errno == errnoTimeout:
		return "errno 110"
	}
	a, err := register.DecodeAnswer(r.Out)
	if err != nil || a.Status == register.Busy {
		return "busy"
	}
	if len(a.Data) == 0xA0 {
		if m, err := register.Decode[register.MGIR](a.Data); err == nil && m.Firmware.Major == 99 {
			return "version 99"
		}
	}
	if len(r.Out) == 0xB0-4 {
		return "172 bytes"
	}
	return a.Status.String()
}

// TestPowerLossInFile checks that, wherever the power is lost while a file is stored, the bytes written until then are
// there, and the rest is not. Nothing incomplete is in force, and the same file can be loaded again.
func TestPowerLossInFile(t *testing.T) {
	f := wall()
	second := nvconfig.GlobalItem(21)
	f.items = append(f.items, nvconfig.OEMItem(second, on))
	const writes = 3 // two items, and the version of the file
	for n := range writes + 1 {
		l := open(t)
		data := f.sign(l)
		handle := get(l, register.MCC{}).Handle
		l.mcc(register.LockHandle, handle, 0)
		l.mcc(register.UpdateComponent, handle, len(data))
		l.download(handle, data)
		l.mcc(register.VerifyComponent, handle, 0)
		l.card.CutPower(n)
		activate, err := register.Encode(register.MCC{Instruction: register.Activate, Handle: handle})
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.card.RPC(register.RPC{In: register.Access{ID: register.IDMCC, Method: register.Write, Data: activate}.Encode(), Room: 48})
		if lost := errors.Is(err, ErrPowerLost); lost != (n < writes) {
			t.Errorf("%d writes: %v", n, err)
		}
		if n < writes {
			l.isOn(n > 0, n > 0) // the boot put in force what was there
			if got := l.value(second, nvconfig.Current)[0] == 0x80; got != (n > 1) {
				t.Errorf("%d writes: the second setting is there: %v", n, got)
			}
		}
		l.card.Reset()
		l.mustUpload(register.OEMNVConfig, data)
		l.card.Reset()
		l.isOn(true, true)
	}
}

// Power that goes while the card is locked leaves it locked or open, with our
// key or none.
func TestPowerLossInLock(t *testing.T) {
	for n := range 2 {
		l := open(t)
		l.card.CutPower(n)
		data, err := register.Encode(register.MLOCK{State: register.Locked, Key: ourKey})
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.card.RPC(register.RPC{In: register.Access{ID: register.IDMLOCK, Method: register.Write, Data: data}.Encode(), Room: 32})
		want := register.Locked
		if n == 0 {
			want = register.Unlocked
		}
		if got := l.card.LockState(); got != want || errors.Is(err, ErrPowerLost) != (n == 0) {
			t.Errorf("%d writes: %v, %v", n, got, err)
		}
	}
}

// FuzzCard checks that the same commands return the same answers, whatever they are, and never cause a panic.
func FuzzCard(f *testing.F) {
	f.Add(uint64(1), []byte{})
	f.Add(uint64(2), register.Access{ID: register.IDMNVDA, Method: register.Read, Data: make([]byte, 300)}.Encode())
	f.Fuzz(func(t *testing.T, seed uint64, p []byte) {
		a, b := New(ConnectX7(nodeGUID, nodeGUID, portGUID)), New(ConnectX7(nodeGUID, nodeGUID, portGUID))
		rng := rand.New(rand.NewPCG(seed, 7))
		ids := []register.ID{register.IDMLOCK, register.IDMCC, register.IDMCDA, register.IDMNVDA, register.IDMNVDI, register.IDMCQI, register.IDMTCQ, register.IDMDSR, register.IDMFRL, register.IDMNVGN, register.IDMQIS}
		for range 20 {
			in := register.Access{ID: ids[rng.IntN(len(ids))], Method: register.Method(rng.IntN(2)), Data: random(rng, p)}.Encode()
			if rng.IntN(8) == 0 {
				in = p
			}
			r := register.RPC{Scope: register.DebugReadOnly, In: in, Room: rng.IntN(600)}
			x, errX := a.RPC(r)
			y, errY := b.RPC(r)
			if diff := cmp.Diff(x, y); diff != "" || !errors.Is(errX, errY) {
				t.Fatalf("two cards differ: %v, %v\n%s", errX, errY, diff)
			}
			if x.Errno == 0 && len(x.Out) != r.Room {
				t.Fatalf("%d bytes for a room of %d", len(x.Out), r.Room)
			}
		}
	})
}

// random returns bytes that are mostly zero, with some of p.
func random(rng *rand.Rand, p []byte) []byte {
	b := make([]byte, rng.IntN(300))
	copy(b[rng.IntN(len(b)+1):], p)
	for range rng.IntN(6) {
		if len(b) > 0 {
			b[rng.IntN(len(b))] = byte(rng.IntN(8))
		}
	}
	return b
}
