package hcasim

import (
	"bytes"
	"crypto/rsa"
	"errors"
	"testing"

	"portcullis/agent/hca/register"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
)

const (
	nodeGUID = ib.GUID(0xb83fd20300123400)
	portGUID = ib.GUID(0xb83fd20300123401)
	testPSID = "TST0000000001"
)

var (
	smConf   = nvconfig.GlobalItem(smConfIndex)
	hostPriv = nvconfig.GlobalItem(hostPrivIndex)
	on, off  = []byte{0x80, 0, 0, 0}, []byte{0, 0, 0, 0}
)

// lab is a card and the driver of the card.
type lab struct {
	*testing.T
	card *Card
}

// open makes a card whose table has the two test keys for settings of the
// operator, and another one for tokens and MLNX.
func open(t *testing.T, change ...func(*Options)) lab {
	t.Helper()
	o := ConnectX7(nodeGUID, nodeGUID, portGUID)
	o.Identity.PSID = testPSID
	for _, bits := range []int{2048, 4096} {
		k := nvconfigtest.Pinned(t, bits)
		o.Keys = append(o.Keys, Key{UUID: k.UUID, Public: k.Public, Signs: SignsOEM})
	}
	o.Keys = append(o.Keys, Key{UUID: vendorUUID, Public: &vendorKey(t).PublicKey, Signs: SignsTokens | SignsMLNX})
	for _, f := range change {
		f(&o)
	}
	return lab{t, New(o)}
}

// The vendor of the tests: the key of the operator under another name.
var vendorUUID = nvconfig.UUID{0xBE, 0xEF}

func vendorKey(t *testing.T) *rsa.PrivateKey { return nvconfigtest.Key(t, 2048) }

func traits(set func(*Traits)) func(*Options) { return func(o *Options) { set(&o.Traits) } }

// rpc does a command that must get a reply.
func (l lab) rpc(a register.Access) register.Answer {
	l.Helper()
	reply, err := l.card.RPC(register.RPC{Scope: register.DebugReadOnly, In: a.Encode(), Room: register.HeaderSize + len(a.Data)})
	if err != nil || reply.Errno != 0 {
		l.Fatalf("%v: error number %d, %v", a, reply.Errno, err)
	}
	answer, err := register.DecodeAnswer(reply.Out)
	if err != nil {
		l.Fatal(err)
	}
	return answer
}

// do reads or writes a register with a layout of its own.
func do[T register.Layout](l lab, m register.Method, v T) (T, register.Status) {
	l.Helper()
	data, err := register.Encode(v)
	if err != nil {
		l.Fatal(err)
	}
	answer := l.rpc(register.Access{ID: v.ID(), Method: m, Data: data})
	out, err := register.Decode[T](answer.Data)
	if err != nil {
		l.Fatal(err)
	}
	return out, answer.Status
}

// get reads a register, which must go well.
func get[T register.Layout](l lab, v T) T {
	l.Helper()
	out, status := do(l, register.Read, v)
	if status != register.OK {
		l.Fatalf("read %v: %v", v.ID(), status)
	}
	return out
}

// item reads a value of a setting.
func (l lab) item(a nvconfig.Address, access nvconfig.Access) (nvconfig.Item, register.Status) {
	l.Helper()
	head := nvconfig.Header{Address: a, Access: access}.Append(nil, register.MaxItemData)
	answer := l.rpc(register.Access{ID: register.IDMNVDA, Method: register.Read, Data: append(head, make([]byte, register.MaxItemData)...)})
	if answer.Status != register.OK {
		return nvconfig.Item{}, answer.Status
	}
	i, _, err := nvconfig.ParseItem(answer.Data)
	if err != nil {
		l.Fatal(err)
	}
	return i, register.OK
}

// write stores a setting as a host does.
func (l lab) write(a nvconfig.Address, data []byte) register.Status {
	l.Helper()
	i := nvconfig.Item{Header: nvconfig.Header{Address: a, OverrideEnabled: true, Writer: nvconfig.WriterMlxconfig}, Data: data}
	return l.rpc(register.Access{ID: register.IDMNVDA, Method: register.Write, Data: i.Append(nil)}).Status
}

// value reads the data of a setting, which must go well.
func (l lab) value(a nvconfig.Address, access nvconfig.Access) []byte {
	l.Helper()
	i, status := l.item(a, access)
	if status != register.OK {
		l.Fatalf("read %v, %v: %v", a, access, status)
	}
	return i.Data
}

// isOn checks SM_DISABLE, now and after the next boot.
func (l lab) isOn(current, next bool) {
	l.Helper()
	for access, want := range map[nvconfig.Access]bool{nvconfig.Current: current, nvconfig.Next: next} {
		if got := bytes.Equal(l.value(smConf, access), on); got != want {
			l.Errorf("SM_DISABLE, %v: %v, want %v", access, got, want)
		}
	}
	if l.card.SMPFirewall() != current {
		l.Errorf("SMP firewall: %v, want %v", l.card.SMPFirewall(), current)
	}
}

// file is what a file of settings is made of.
type file struct {
	id    nvconfig.FileID
	psid  string
	items []nvconfig.Item
}

// wall is a file that puts the SMP firewall up.
func wall() file {
	return file{nvconfig.FileID{KeepSame: true, Version: 7}, testPSID, []nvconfig.Item{nvconfig.OEMItem(smConf, on)}}
}

func (f file) parts(l lab) []nvconfig.Item {
	l.Helper()
	id, err := f.id.Item()
	if err != nil {
		l.Fatal(err)
	}
	psid, err := nvconfig.ForPSID(f.psid, "")
	if err != nil {
		l.Fatal(err)
	}
	return append([]nvconfig.Item{id, psid}, f.items...)
}

func (f file) sign(l lab) []byte {
	l.Helper()
	return l.signed(f.parts(l), nvconfigtest.Key(l.T, 4096), nvconfigtest.KeyUUID)
}

func (l lab) signed(items []nvconfig.Item, k *rsa.PrivateKey, id nvconfig.UUID) []byte {
	l.Helper()
	b, err := nvconfig.Sign(items, k, id)
	if err != nil {
		l.Fatal(err)
	}
	return b
}

// errRefused is a component that was refused, with the machine's reason.
type errRefused struct{ reason register.MCCError }

func (e errRefused) Error() string { return "refused: " + e.reason.String() }

// upload loads a component as tools do, and makes it hold.
func (l lab) upload(id register.Component, data []byte) error {
	l.Helper()
	index := -1
	for i, c := range components {
		if c == id {
			index = i
		}
	}
	mcc := register.MCC{Handle: get(l, register.MCC{}).Handle}
	steps := []register.Instruction{register.LockHandle, register.UpdateComponent, register.VerifyComponent, register.Activate, register.ReleaseHandle}
	for _, step := range steps {
		mcc.Instruction, mcc.Index, mcc.Length = step, uint16(index), uint32(len(data))
		out, status := do(l, register.Write, mcc)
		for range 2 { // cards that end a step later
			if status == register.OK && (out.State == register.StateInitialize || out.State == register.StateVerify) {
				out = get(l, register.MCC{})
			}
		}
		if status != register.OK || out.Error != register.MCCOK {
			return errRefused{out.Error}
		}
		if step == register.UpdateComponent {
			l.download(mcc.Handle, data)
		}
	}
	return nil
}

func (l lab) download(handle uint32, data []byte) {
	l.Helper()
	for at := 0; at < len(data); at += register.BlockSize {
		block := data[at:min(at+register.BlockSize, len(data))]
		if _, status := do(l, register.Write, register.NewMCDA(handle, uint32(at), block)); status != register.OK {
			l.Fatalf("block at %d: %v", at, status)
		}
	}
}

// mustUpload loads what must be taken.
func (l lab) mustUpload(id register.Component, data []byte) {
	l.Helper()
	if err := l.upload(id, data); err != nil {
		l.Fatal(err)
	}
}

// refused checks that a component is refused for a reason.
func (l lab) refused(id register.Component, data []byte, want register.MCCError) {
	l.Helper()
	if got, ok := errors.AsType[errRefused](l.upload(id, data)); !ok || got.reason != want {
		l.Errorf("got %v, want it refused: %v", got, want)
	}
}
