package nvconfig_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
)

func vector(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/tenant-lock." + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// setting makes an item out of parameters and values.
func setting(t testing.TB, a nvconfig.Address, values ...string) nvconfig.Item {
	t.Helper()
	l, ok := nvconfig.LayoutOf(a)
	if !ok {
		t.Fatalf("%v has no layout", a)
	}
	i := nvconfig.OEMItem(a, make([]byte, l.Size))
	for _, v := range values {
		name, value, _ := strings.Cut(v, "=")
		p, ok := nvconfig.LookUp(name)
		if !ok || p.Item != l {
			t.Fatalf("%s is no parameter of %s", name, l.Name)
		}
		if err := p.Field.Set(i.Data, value); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

// tenantLock returns the items of testdata/tenant-lock.xml, in its order.
func tenantLock(t testing.TB) []nvconfig.Item {
	return []nvconfig.Item{
		must[nvconfig.Item](t)(nvconfig.FileID{KeepSame: true, Version: 7, Time: time.Date(2026, 1, 15, 11, 22, 33, 0, time.UTC)}.Item()),
		must[nvconfig.Item](t)(nvconfig.ForPSID("TST0000000001", "")),
		setting(t, nvconfig.GlobalItem(290), "SM_DISABLE=True"),
		setting(t, nvconfig.GlobalItem(291), "HOST_PRIV_FLASH_ACCESS=DISABLE", "HOST_PRIV_NV_HOST=DISABLE", "HOST_PRIV_NV_PORT=DISABLE",
			"HOST_PRIV_NV_GLOBAL=DISABLE", "HOST_PRIV_NV_INTERNAL_CPU=DISABLE", "HOST_PRIV_PCC_UPDATE=DISABLE", "HOST_PRIV_FW_UPDATE=DISABLE"),
		setting(t, nvconfig.HostItem(0, 131), "HOST_PRIV_LEVEL=LIMITED", "HOST_DISABLE_PORT_OWNER=True", "HOST_DISABLE_TRACER_OWNER=True", "HOST_DISABLE_RSHIM=True"),
		setting(t, nvconfig.AllFunctionsItem(273), "VIRTUAL_NODE_GUID=0x0102030405060708"),
	}
}

// TestVectors makes the five files that mstconfig 4.36 made of one description
// (testdata/README.md), byte for byte, and reads them back.
func TestVectors(t *testing.T) {
	items := tenantLock(t)
	data := []byte{}
	for _, i := range items {
		data = append(data, i.Data...)
	}
	for name, got := range map[string][]byte{
		"raw":         []byte(nvconfig.FormatRaw(items)),
		"data.bin":    data,
		"digest.bin":  must[[]byte](t)(nvconfig.Seal(items)),
		"rsa2048.bin": must[[]byte](t)(nvconfig.Sign(items, nvconfigtest.Key(t, 2048), nvconfigtest.KeyUUID)),
		"rsa4096.bin": must[[]byte](t)(nvconfig.Sign(items, nvconfigtest.Key(t, 4096), nvconfigtest.KeyUUID)),
	} {
		if !bytes.Equal(got, vector(t, name)) {
			t.Errorf("%s differs:\n%x\nwant\n%x", name, got, vector(t, name))
		}
	}
	if got := must[[]nvconfig.Item](t)(nvconfig.ParseRaw(string(vector(t, "raw")))); !cmp.Equal(got, items) {
		t.Errorf("text form is read as\n%s", cmp.Diff(got, items))
	}
	for _, name := range []string{"digest.bin", "rsa2048.bin", "rsa4096.bin"} {
		f := must[*nvconfig.File](t)(nvconfig.Parse(vector(t, name)))
		if d := cmp.Diff(f.Items, items); d != "" || f.Component != nvconfig.OEMConfig {
			t.Errorf("%s, %v:\n%s", name, f.Component, d)
		}
		if len(f.Settings()) != 4 || !slices.Equal(f.PSIDs(), []string{"TST0000000001"}) || f.DeviceIDs() != nil {
			t.Errorf("%s: %d settings for %q, %x", name, len(f.Settings()), f.PSIDs(), f.DeviceIDs())
		}
	}
}

// boundLock returns the items of testdata/bound-lock.xml: those of tenant-lock.xml, for one device and its challenge.
func boundLock(t testing.TB) []nvconfig.Item {
	t.Helper()
	var nonce [32]byte
	for i := range nonce {
		nonce[i] = 0xA0 + byte(i)
	}
	unique := must[nvconfig.Item](t)(nvconfig.ForChallenges(nvconfig.NewChallenge(0xb83fd2123400, nonce)))
	return slices.Insert(tenantLock(t), 2, unique)
}

// TestBoundVectors does the same for files that are bound to a challenge.
func TestBoundVectors(t *testing.T) {
	items := boundLock(t)
	for name, got := range map[string][]byte{
		"raw":         []byte(nvconfig.FormatRaw(items)),
		"digest.bin":  must[[]byte](t)(nvconfig.Seal(items)),
		"rsa2048.bin": must[[]byte](t)(nvconfig.Sign(items, nvconfigtest.Key(t, 2048), nvconfigtest.KeyUUID)),
		"rsa4096.bin": must[[]byte](t)(nvconfig.Sign(items, nvconfigtest.Key(t, 4096), nvconfigtest.KeyUUID)),
	} {
		want := must[[]byte](t)(os.ReadFile("testdata/bound-lock." + name))
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs:\n%x\nwant\n%x", name, got, want)
		}
		if name == "raw" {
			continue
		}
		f := must[*nvconfig.File](t)(nvconfig.Parse(want))
		of, err := f.Challenges()
		if d := cmp.Diff(f.Items, items); d != "" || err != nil || len(of) != 1 || of[0].MAC() != 0xb83fd2123400 || len(f.Settings()) != 4 {
			t.Errorf("%s: bound to %v, %v:\n%s", name, of, err, d)
		}
	}
}

// TestTruncated: a beginning of a file is no file, but where an item ends, and
// then it is not signed.
func TestTruncated(t *testing.T) {
	for _, name := range []string{"digest.bin", "rsa2048.bin", "rsa4096.bin"} {
		b := vector(t, name)
		files := 0
		for n := range len(b) {
			f, err := nvconfig.Parse(b[:n])
			if err != nil {
				continue
			}
			if files++; f.Signature.Scheme != nvconfig.Unsigned {
				t.Errorf("%s: %d of %d bytes are a signed file", name, n, len(b))
			}
		}
		if files != 5 { // behind the board, and behind each of four settings
			t.Errorf("%s: %d of its beginnings are files, want 5", name, files)
		}
	}
}

func TestVerify(t *testing.T) {
	keys := []nvconfig.PinnedKey{nvconfigtest.Pinned(t, 2048), nvconfigtest.Pinned(t, 4096)}
	other := nvconfigtest.Pinned(t, 2048)
	other.UUID[0]++
	stranger := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 2048))
	forged := must[[]byte](t)(nvconfig.Sign(tenantLock(t), stranger, nvconfigtest.KeyUUID))
	damaged := slices.Clone(vector(t, "rsa2048.bin"))
	damaged[0x64] ^= 0x80 // SM_DISABLE
	swapped := slices.Clone(vector(t, "digest.bin"))
	swapped[0x64] ^= 0x80
	half := slices.Clone(vector(t, "rsa4096.bin"))
	half[len(half)-1] ^= 1
	for _, tt := range []struct {
		name string
		file []byte
		keys []nvconfig.PinnedKey
		want error
	}{
		{"RSA-2048", vector(t, "rsa2048.bin"), keys, nil},
		{"RSA-4096", vector(t, "rsa4096.bin"), keys, nil},
		{"digest only", vector(t, "digest.bin"), keys, nvconfig.ErrNotSigned},
		{"digest only, damaged", swapped, keys, nvconfig.ErrDigest},
		{"signature cut off", vector(t, "rsa2048.bin")[:0xAC], keys, nvconfig.ErrNotSigned},
		{"no key is pinned", vector(t, "rsa2048.bin"), nil, nvconfig.ErrUnknownKey},
		{"another UUID is pinned", vector(t, "rsa2048.bin"), []nvconfig.PinnedKey{other}, nvconfig.ErrUnknownKey},
		{"the size is another", vector(t, "rsa4096.bin"), keys[:1], nvconfig.ErrUnknownKey},
		{"signed by a stranger", forged, keys, nvconfig.ErrSignature},
		{"a setting was changed", damaged, keys, nvconfig.ErrSignature},
		{"second half was changed", half, keys, nvconfig.ErrSignature},
	} {
		f, err := nvconfig.Parse(tt.file)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		k, err := f.Verify(tt.keys)
		if !errors.Is(err, tt.want) || (tt.want == nil) != (k.Public != nil) {
			t.Errorf("%s: %v, key %v; want %v", tt.name, err, k.UUID, tt.want)
		}
	}
}

// TestReservedBytes: nothing covers the 16 bytes before the UUID of the key, in either form of a signature.
func TestReservedBytes(t *testing.T) {
	for name, ends := range map[string][]int{"rsa2048.bin": {0x140}, "rsa4096.bin": {0x120, 2*0x120 + 12}, "digest.bin": {0x140}} {
		for _, end := range ends {
			for at := range 16 {
				b := vector(t, name)
				b[len(b)-end+at] ^= 0x40
				if _, err := nvconfig.Parse(b); err == nil || !strings.Contains(err.Error(), "reserved bytes") {
					t.Errorf("%s, byte %d: %v", name, len(b)-end+at, err)
				}
			}
		}
	}
}

// TestLowExponent: a key with another exponent than 65537 signs nothing.
func TestLowExponent(t *testing.T) {
	f, err := nvconfig.Parse(vector(t, "rsa2048.bin"))
	if err != nil {
		t.Fatal(err)
	}
	key := nvconfigtest.Key(t, 2048)
	for _, e := range []int{3, 17, 65539} {
		low := *key
		low.E = e
		if b, err := nvconfig.Sign(f.Items, &low, nvconfigtest.Pinned(t, 2048).UUID); err == nil || !strings.Contains(err.Error(), fmt.Sprint("exponent ", e)) {
			t.Errorf("exponent %d: %d bytes, %v", e, len(b), err)
		}
	}
}

// TestEveryByteIsSigned changes each byte of a signed file in turn: none may
// leave a file that verifies and says something else.
func TestEveryByteIsSigned(t *testing.T) {
	b := vector(t, "rsa2048.bin")
	keys := []nvconfig.PinnedKey{nvconfigtest.Pinned(t, 2048)}
	for at := range b {
		b[at] ^= 1
		if f, err := nvconfig.Parse(b); err == nil {
			if _, err := f.Verify(keys); err == nil {
				t.Errorf("byte 0x%x may be anything", at)
			}
		}
		b[at] ^= 1
	}
}

type brokenSigner struct{ crypto.Signer }

func (s brokenSigner) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return make([]byte, 256), nil
}

type failingSigner struct{ crypto.Signer }

func (s failingSigner) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("the token is gone")
}

func TestSignRefuses(t *testing.T) {
	key := nvconfigtest.Key(t, 2048)
	curve := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	odd := must[*rsa.PrivateKey](t)(rsa.GenerateKey(rand.Reader, 3072))
	for _, tt := range []struct {
		name   string
		signer crypto.Signer
		uuid   nvconfig.UUID
		want   string
	}{
		{"no UUID", key, nvconfig.UUID{}, "no UUID of the key"},
		{"elliptic curve", curve, nvconfigtest.KeyUUID, "want RSA"},
		{"3072 bits", odd, nvconfigtest.KeyUUID, "an RSA key of 3072 bits"},
		{"a token with another key", brokenSigner{key}, nvconfigtest.KeyUUID, "does not verify"},
		{"a token that is gone", failingSigner{key}, nvconfigtest.KeyUUID, "the token is gone"},
	} {
		if b, err := nvconfig.Sign(tenantLock(t), tt.signer, tt.uuid); err == nil || b != nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestArrange has the orders that mstconfig's swapping makes.
func TestArrange(t *testing.T) {
	l := tenantLock(t)
	id, psid, sm, priv, host := l[0], l[1], l[2], l[3], l[4]
	second := must[nvconfig.Item](t)(nvconfig.ForPSID("TST0000000002", "BR"))
	old := nvconfig.Item{Header: nvconfig.Header{Address: nvconfig.FileItemAddress(4)}}
	for name, tt := range map[string]struct{ in, want []nvconfig.Item }{
		"in order":        {[]nvconfig.Item{id, psid, sm, priv}, []nvconfig.Item{id, psid, sm, priv}},
		"component last":  {[]nvconfig.Item{sm, psid, priv, id}, []nvconfig.Item{id, psid, priv, sm}},
		"settings first":  {[]nvconfig.Item{sm, priv, id, psid}, []nvconfig.Item{id, psid, sm, priv}},
		"two boards":      {[]nvconfig.Item{id, sm, psid, priv, second, host}, []nvconfig.Item{id, psid, second, priv, sm, host}},
		"signature drops": {[]nvconfig.Item{id, old, psid, sm}, []nvconfig.Item{id, psid, sm}},
	} {
		got, c, err := nvconfig.Arrange(tt.in)
		if err != nil || c != nvconfig.OEMConfig || !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v\n%s", name, c, err, cmp.Diff(got, tt.want))
		}
	}
}

// TestFilesRefused checks that items that another reader may read differently are refused, both when a file is made and
// when it is read.
func TestFilesRefused(t *testing.T) {
	l := tenantLock(t)
	id, psid, sm := l[0], l[1], l[2]
	device := must[nvconfig.Item](t)(nvconfig.ForDevice([32]byte{31: 1}))
	mlnx := id
	mlnx.Address = nvconfig.GlobalItem(0x10E)
	current := sm
	current.Access = nvconfig.Current
	long := sm
	long.Data = make([]byte, 8)
	odd := sm
	odd.Address, odd.Data = nvconfig.GlobalItem(99), make([]byte, 6)
	flags, date, odder := id, id, id
	odder.Data = append([]byte{0x21}, id.Data[1:]...)
	flags.Data = append([]byte{0x10}, id.Data[1:]...)
	date.Data = slices.Clone(id.Data)
	date.Data[10] = 0x13
	for name, tt := range map[string]struct {
		items []nvconfig.Item
		want  string
	}{
		"no component":     {[]nvconfig.Item{psid, sm}, "the item that says what the file is is missing"},
		"two components":   {[]nvconfig.Item{id, mlnx, psid}, "OEM NVCONFIG and MLNX NVCONFIG in one file"},
		"for anybody":      {[]nvconfig.Item{id, sm}, "which adapters the file is for"},
		"PSID and device":  {[]nvconfig.Item{id, psid, device, sm}, "items of one kind"},
		"a setting twice":  {[]nvconfig.Item{id, psid, sm, sm}, "global item 290 occurs twice"},
		"current value":    {[]nvconfig.Item{id, psid, current}, "for the next boot"},
		"wrong length":     {[]nvconfig.Item{id, psid, long}, "8 bytes of data, want 4"},
		"odd length":       {[]nvconfig.Item{id, psid, odd}, "a multiple of 4"},
		"flags contradict": {[]nvconfig.Item{flags, psid, sm}, "disable_override needs"},
		"reserved flags":   {[]nvconfig.Item{odder, psid, sm}, "reserved bits are set"},
		"month 13":         {[]nvconfig.Item{date, psid, sm}, "its date is not valid"},
	} {
		if _, err := nvconfig.Seal(tt.items); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: made with %v, want %q", name, err, tt.want)
		}
		b := []byte(nvconfig.Fingerprint)
		for _, i := range tt.items {
			b = i.Append(b)
		}
		if _, err := nvconfig.Parse(b); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: read with %v, want %q", name, err, tt.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	whole, l := vector(t, "rsa2048.bin"), tenantLock(t)
	disordered := []byte(nvconfig.Fingerprint)
	for _, i := range []nvconfig.Item{l[0], l[2], l[1]} {
		disordered = i.Append(disordered)
	}
	first := []byte(nvconfig.Fingerprint)
	for _, i := range []nvconfig.Item{l[2], l[0], l[1]} {
		first = i.Append(first)
	}
	sig := len(whole) - 0x140 - 12
	header := slices.Clone(whole)
	header[sig] = 0x11
	padded := slices.Clone(whole)
	padded[len(padded)-1] = 1
	big := vector(t, "rsa4096.bin")
	halfKey := slices.Clone(big)
	halfKey[len(big)-0x120+16] ^= 1
	for name, tt := range map[string]struct {
		file []byte
		want string
	}{
		"empty":                {nil, "does not begin with"},
		"an image":             {[]byte("MTFW\x8c\xde\xd5\xac\x00\x00\x00\x00\x00\x00\x00\x00"), "does not begin with"},
		"too large":            {make([]byte, nvconfig.MaxFile+1), "more than 65536"},
		"behind the signature": {append(slices.Clone(whole), 0), "1 bytes after the signature"},
		"two signatures":       {append(slices.Clone(whole), whole[sig:]...), "bytes after the signature"},
		"signature's header":   {header, "not that of a signature"},
		"signature's padding":  {padded, "there are bytes after the signature"},
		"first half alone":     {big[:len(big)-0x120-12], "second half of the signature"},
		"halves of two keys":   {halfKey, "different keys"},
		"board behind":         {disordered, "comes after settings"},
		"component not first":  {first, "must come first"},
		"3072 bits": {
			nvconfig.Item{Header: nvconfig.Header{Address: nvconfig.FileItemAddress(21)}, Data: make([]byte, 416)}.Append(slices.Clone(whole[:sig])),
			"of unknown form",
		},
	} {
		if _, err := nvconfig.Parse(tt.file); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// TestTokens checks that a file that opens a session of the vendor is recognized as the right token.
func TestTokens(t *testing.T) {
	psid := tenantLock(t)[1]
	unique := must[nvconfig.Item](t)(nvconfig.ForChallenges(nvconfig.Challenge{Device: [8]byte{1}, Nonce: [32]byte{2}}))
	token := func(index uint32, size int) nvconfig.Item {
		return nvconfig.OEMItem(nvconfig.FileItemAddress(index), make([]byte, size))
	}
	for _, tt := range []struct {
		items  []nvconfig.Item
		want   nvconfig.Component
		number uint16
	}{
		{[]nvconfig.Item{token(7, 4), psid}, nvconfig.CSToken, 6},
		{[]nvconfig.Item{token(7, 4), psid, unique}, nvconfig.CRCSToken, 0x10},
		{[]nvconfig.Item{token(5, 8), psid}, nvconfig.DebugToken, 7},
		{[]nvconfig.Item{token(5, 8), psid, unique}, nvconfig.CRDTToken, 0x11},
		{[]nvconfig.Item{token(8, 4), psid}, nvconfig.CommissioningToken, 0xD},
		{[]nvconfig.Item{token(9, 256), psid, token(0x10, 4)}, nvconfig.RMCSToken, 0xE},
		{[]nvconfig.Item{token(9, 256), psid, token(0x11, 4)}, nvconfig.RMDTToken, 0xF},
		{[]nvconfig.Item{token(0x13, 4), psid}, nvconfig.FRCToken, 0},
	} {
		f, err := nvconfig.Parse(must[[]byte](t)(nvconfig.Seal(tt.items)))
		if err != nil || f.Component != tt.want || f.Component.Number() != tt.number || !f.Component.IsToken() || len(f.Settings()) != 0 {
			t.Errorf("want %v: %+v, %v", tt.want, f, err)
		}
	}
	got, err := nvconfig.ChallengesOf(unique)
	if err != nil || !cmp.Equal(got, []nvconfig.Challenge{{Device: [8]byte{1}, Nonce: [32]byte{2}}}) {
		t.Errorf("challenges: %v, %v", got, err)
	}
	for _, n := range []int{0, 13} {
		if _, err := nvconfig.ForChallenges(make([]nvconfig.Challenge, n)...); err == nil {
			t.Errorf("%d devices in one item: no error", n)
		}
	}
}

// TestChallenges checks that the challenges of a file are read as they were made, and that wrong ones are refused.
func TestChallenges(t *testing.T) {
	a, b := nvconfig.NewChallenge(0xb83fd2123400, [32]byte{1}), nvconfig.NewChallenge(0xb83fd2123400, [32]byte{2})
	if a.MAC() != 0xb83fd2123400 || a.Device != [8]byte{0, 0, 0xb8, 0x3f, 0xd2, 0x12, 0x34, 0} {
		t.Errorf("device %x of %x", a.Device, a.MAC())
	}
	unique := must[nvconfig.Item](t)(nvconfig.ForChallenges(a, b))
	items := append(tenantLock(t), unique)
	f := must[*nvconfig.File](t)(nvconfig.Parse(must[[]byte](t)(nvconfig.Seal(items))))
	if got, err := f.Challenges(); err != nil || !cmp.Equal(got, []nvconfig.Challenge{a, b}) || !f.Bound() || f.Component != nvconfig.OEMConfig {
		t.Errorf("bound to %v, %v", got, err)
	}
	plain := must[*nvconfig.File](t)(nvconfig.Parse(vector(t, "rsa4096.bin")))
	if got, err := plain.Challenges(); err != nil || got != nil || plain.Bound() {
		t.Errorf("a file that is bound to nothing: %v, %v", got, err)
	}
	for name, of := range map[string][]nvconfig.Challenge{
		"no device": {nvconfig.NewChallenge(0, [32]byte{1})}, "no nonce": {nvconfig.NewChallenge(1, [32]byte{})}, "twice": {a, b, a},
	} {
		if _, err := nvconfig.ForChallenges(of...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, change := range map[string]func([]byte){
		"something behind":         func(d []byte) { d[487] = 1 },
		"one more than is counted": func(d []byte) { d[1] = 0x10 },
		"none":                     func(d []byte) { clear(d) },
		"thirteen":                 func(d []byte) { d[1] = 0xD0 },
		"fewer than are counted":   func(d []byte) { d[1] = 0x30 },
		"reserved bits":            func(d []byte) { d[3] = 1 },
		"reserved dword":           func(d []byte) { d[4] = 1 },
		"another format":           func(d []byte) { d[0] = 1 },
	} {
		odd := unique
		odd.Data = slices.Clone(unique.Data)
		change(odd.Data)
		if got, err := nvconfig.ChallengesOf(odd); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	id := nvconfig.DeviceID(0xb83fd2123400)
	if id[25] != 0 || id[26] != 0xb8 || id[31] != 0 || id[30] != 0x34 {
		t.Errorf("device id %x", id)
	}
}

func TestFileID(t *testing.T) {
	for _, id := range []nvconfig.FileID{
		{},
		{KeepSame: true, Version: 0xFFFFFFFF, Time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)},
		{KeepSame: true, DisableOverride: true, Time: time.Date(2028, 2, 29, 0, 0, 0, 0, time.UTC)},
		{EraseLower: true, PerItem: true},
	} {
		i, err := id.Item()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := nvconfig.FileIDOf(i); err != nil || got != id {
			t.Errorf("%+v is read as %+v, %v", id, got, err)
		}
	}
	for _, id := range []nvconfig.FileID{
		{DisableOverride: true},
		{DisableOverride: true, KeepSame: true, EraseLower: true},
		{Time: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		if _, err := id.Item(); err == nil {
			t.Errorf("%+v: no error", id)
		}
	}
}

func TestRawRefuses(t *testing.T) {
	const head = nvconfig.RawFingerprint + "\n"
	for text, want := range map[string]string{
		"":                      "first line",
		"0x11000004":            "first line",
		head + "0x11000004":     "line 2: header of an item: 4 bytes",
		head + "\n11000004 0x0": `line 3: "11000004"`,
		head + "0x0000012":      "8 hexadecimal digits",
		head + "0x11000004 0x00000122 0x00000000 0x80000000 0x00000000": "1 dwords more",
		head + "0x11000008 0x00000122 0x00000000 0x80000000":            "says 8 bytes of data, 4 are there",
		head + strings.Repeat("0x11000004 ", 131):                       "more than 130 dwords",
		head + strings.Repeat("\n", 4*nvconfig.MaxFile):                 "more than",
	} {
		if _, err := nvconfig.ParseRaw(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}
