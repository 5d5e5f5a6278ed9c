package secureboot

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/attest/eventlog"
	"portcullis/attest/peimage"
	"portcullis/packaging/testenv"
)

// list writes an EFI_SIGNATURE_LIST of entries that have one size.
func list(kind GUID, entries ...[]byte) []byte {
	size := ownerSize + len(entries[0])
	b := binary.LittleEndian.AppendUint32(kind[:], uint32(listHeader+len(entries)*size))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(size))
	for _, e := range entries {
		b = append(append(b, "sixteen byte owne"[:ownerSize]...), e...)
	}
	return b
}

// TestRealLogs holds the computed events against those that OVMF measured, with
// Secure Boot and without.
func TestRealLogs(t *testing.T) {
	t.Parallel()
	for name, enabled := range map[string]bool{"ovmf-secure.log": true, "ovmf-plain.log": false} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		log, err := eventlog.Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		v, err := FromLog(log)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if v.Enabled != enabled {
			t.Errorf("%s: Secure Boot is enabled: %v, want %v", name, v.Enabled, enabled)
		}
		var got []eventlog.Digest
		for _, m := range v.Config() {
			got = append(got, m.Digest)
		}
		var want []eventlog.Digest
		for _, e := range log.Of(7)[:5] {
			want = append(want, e.Digest)
		}
		if d := cmp.Diff(got, want); d != "" {
			t.Errorf("%s: configuration (-got +want):\n%s", name, d)
		}
		if on, known := Enabled(want[0]); !known || on != enabled {
			t.Errorf("%s: the digest of SecureBoot says %v, %v", name, on, known)
		}
		if !enabled {
			continue
		}
		db, err := parseLists(v.DB)
		if err != nil || len(db) != 1 {
			t.Fatalf("%s: db has %d entries: %v", name, len(db), err)
		}
		if got, want := measure("db", db[0].raw).Digest, log.Of(7)[6].Digest; got != want {
			t.Errorf("%s: authority %v, OVMF measured %v", name, got, want)
		}
	}
}

func TestFromLogRefuses(t *testing.T) {
	t.Parallel()
	variable := func(name string, data ...byte) eventlog.Event {
		g := owner(name)
		b := binary.LittleEndian.AppendUint64(g[:], uint64(len(name)))
		b = binary.LittleEndian.AppendUint64(b, uint64(len(data)))
		for i := range len(name) {
			b = append(b, name[i], 0)
		}
		b = append(b, data...)
		return eventlog.Event{PCR: 7, Digest: sha256.Sum256(b), Data: b}
	}
	all := func() *eventlog.Log {
		return &eventlog.Log{Events: []eventlog.Event{variable("SecureBoot", 0), variable("PK"), variable("KEK"), variable("db"), variable("dbx")}}
	}
	if _, err := FromLog(all()); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*eventlog.Log){
		"no dbx":               func(l *eventlog.Log) { l.Events = l.Events[:4] },
		"data is not measured": func(l *eventlog.Log) { l.Events[3].Digest[0] ^= 1 },
		"another register":     func(l *eventlog.Log) { l.Events[3].PCR = 5 },
		"SecureBoot is 2":      func(l *eventlog.Log) { l.Events[0] = variable("SecureBoot", 2) },
		"db is no list":        func(l *eventlog.Log) { l.Events[3] = variable("db", 1, 2, 3) },
	} {
		l := all()
		spoil(l)
		if _, err := FromLog(l); err == nil {
			t.Errorf("%s: was taken", name)
		}
	}
}

func TestParseVariable(t *testing.T) {
	t.Parallel()
	lists := append(list(certSHA256, make([]byte, 32), make([]byte, 32)), list(certX509, []byte("certificate"))...)
	for name, b := range map[string][]byte{"as it is": lists, "of efivarfs": append([]byte{7, 0, 0, 0}, lists...)} {
		if got, err := ParseVariable(b); err != nil || !bytes.Equal(got, lists) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
	}
	for n := range lists {
		if n == 0 || n == len(list(certSHA256, make([]byte, 32), make([]byte, 32))) || n == 4 {
			continue // whole lists: none, the first, and none with attributes
		}
		if _, err := parseLists(lists[:n]); err == nil {
			t.Errorf("a prefix of %d bytes was taken", n)
		}
	}
	if _, err := ParseVariable(make([]byte, MaxVariable+5)); err == nil {
		t.Error("a variable over its size was taken")
	}
	if got, want := globalVariable.String(), "8be4df61-93ca-11d2-aa0d-00e098032b8c"; got != want {
		t.Errorf("GUID is %s, want %s", got, want)
	}
}

// signer is a key with a certificate.
type signer struct {
	key  *rsa.PrivateKey
	cert *x509.Certificate
}

// issue makes a signer, self-signed when by is nil.
func issue(t *testing.T, name string, by *signer) *signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: now.AddDate(-3, 0, 0), NotAfter: now.AddDate(-1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if by == nil {
		by = &signer{key, template}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, &key.PublicKey, by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &signer{key, cert}
}

func write(t *testing.T, dir, name, kind string, der []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const stub = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"

// sign has sbsign sign the stub, with more certificates in the signature.
func (s *signer) sign(t *testing.T, more ...*signer) []byte {
	t.Helper()
	dir := t.TempDir()
	key := write(t, dir, "key", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(s.key))
	args := []string{"--key", key, "--cert", write(t, dir, "cert", "CERTIFICATE", s.cert.Raw)}
	if len(more) > 0 {
		args = append(args, "--addcert", write(t, dir, "more", "CERTIFICATE", more[0].cert.Raw))
	}
	out := filepath.Join(dir, "out")
	if said, err := exec.CommandContext(t.Context(), testenv.Program(t, "sbsign"), append(args, "--output", out, stub)...).CombinedOutput(); err != nil {
		t.Fatalf("sbsign: %v\n%s", err, said)
	}
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func parse(t *testing.T, b []byte) *peimage.Image {
	t.Helper()
	m, err := peimage.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func unsigned(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile(stub)
	if err != nil {
		testenv.Need(t, errors.Join(err, errors.New("install systemd-boot-efi")))
	}
	return b
}

// TestAuthority signs images in several ways and looks which entry of db allows them.
func TestAuthority(t *testing.T) {
	t.Parallel()
	root, other := issue(t, "root", nil), issue(t, "other", nil)
	middle := issue(t, "middle", root)
	leaf := issue(t, "leaf", middle)
	plain := parse(t, unsigned(t))
	digest := plain.Digest()
	byRoot, byLeaf := parse(t, root.sign(t)), parse(t, leaf.sign(t, middle))
	rootDigest, leafDigest := byRoot.Digest(), byLeaf.Digest()
	x := func(all ...*signer) (b []byte) {
		for _, s := range all {
			b = append(b, list(certX509, s.cert.Raw)...)
		}
		return b
	}
	tbs := sha256.Sum256(middle.cert.RawTBSCertificate)
	for _, tt := range []struct {
		name    string
		image   *peimage.Image
		db, dbx []byte
		want    []byte // data of the entry
		refused string
	}{
		{"certificate in db", byRoot, x(other, root), nil, root.cert.Raw, ""},
		{"first of two that fit", byLeaf, x(middle, root), nil, middle.cert.Raw, ""},
		{"root of a chain", byLeaf, x(other, root), nil, root.cert.Raw, ""},
		{"digest in db", plain, list(certSHA256, make([]byte, 32), digest[:]), nil, digest[:], ""},
		{"signed and digest in db", byRoot, append(x(other), list(certSHA256, rootDigest[:])...), nil, rootDigest[:], ""},
		{"entry that is no certificate", byRoot, append(list(certX509, []byte("none")), x(root)...), nil, root.cert.Raw, ""},
		{"unsigned", plain, x(root), nil, nil, "not signed"},
		{"another's signature", byRoot, x(other), nil, nil, "no certificate of db"},
		{"chain broken", parse(t, leaf.sign(t)), x(root), nil, nil, "no certificate of db"},
		{"digest in dbx", byRoot, x(root), list(certSHA256, rootDigest[:]), nil, "by its digest"},
		{"digest in dbx and db", byLeaf, list(certSHA256, leafDigest[:]), list(certSHA256, leafDigest[:]), nil, "by its digest"},
		{"certificate in dbx", byLeaf, x(root), x(middle), nil, `forbids the certificate "CN=middle"`},
		{"certificate's digest in dbx", byLeaf, x(root), list(certX509SHA256, append(tbs[:], make([]byte, 16)...)), nil, `forbids the certificate "CN=middle"`},
		{"db malformed", byRoot, []byte{1}, nil, nil, "db: want"},
		{"dbx malformed", byRoot, x(root), []byte{1}, nil, "dbx: want"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := &Variables{Enabled: true, DB: tt.db, DBX: tt.dbx}
			got, err := v.Authority(tt.image)
			if tt.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refused) {
					t.Fatalf("got %v, want an error with %q", err, tt.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := measure("db", append([]byte("sixteen byte owne")[:ownerSize:ownerSize], tt.want...)); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// TestSignatureSpoiled changes an image, and each byte of a signature in turn.
func TestSignatureSpoiled(t *testing.T) {
	t.Parallel()
	s := issue(t, "signer", nil)
	b := s.sign(t)
	v := &Variables{Enabled: true, DB: list(certX509, s.cert.Raw)}
	changed := bytes.Clone(b)
	changed[0x2000] ^= 1
	if _, err := v.Authority(parse(t, changed)); err == nil || !strings.Contains(err.Error(), "another image") {
		t.Errorf("an image that was changed: got %v", err)
	}
	image := parse(t, b)
	der, digest := image.Signatures[0], image.Digest()
	taken := 0
	for i := range der {
		spoiled := bytes.Clone(der)
		spoiled[i] ^= 0x20
		if got, err := verifySignature(spoiled, digest); err == nil && got.signer.Equal(s.cert) {
			taken++
		}
	}
	// Version numbers, algorithm parameters and the like are not signed.
	if taken > 80 {
		t.Errorf("%d of %d bytes can be changed without a difference", taken, len(der))
	}
	for n := range der {
		if _, err := verifySignature(der[:n], digest); err == nil {
			t.Fatalf("a prefix of %d bytes was taken", n)
		}
	}
}

// FuzzSignature has verifySignature take anything.
func FuzzSignature(f *testing.F) {
	f.Add([]byte{0x30, 0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := verifySignature(b, [32]byte{}); err == nil {
			t.Error("a signature of the digest zero was taken")
		}
	})
}

// FuzzLists checks that the entries of accepted lists have no more bytes than the variable.
func FuzzLists(f *testing.F) {
	f.Add(list(certSHA256, make([]byte, 32), make([]byte, 32)))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := parseLists(b)
		if err != nil {
			return
		}
		total := 0
		for i := range all {
			total += len(all[i].raw)
		}
		if total > len(b) {
			t.Errorf("entries have %d bytes, the variable %d", total, len(b))
		}
	})
}
