package mst

import (
	"errors"
	"strings"
	"testing"

	"portcullis/agent/hca/register"
)

// dump is what 4.36 prints for a register that it is given by number.
const dump = `Sending access register...

Address    | Data
=======================
0x00000000 | 0x00000001
0x00000004 | 0x00000000
0x00000008 | 0xdeadbeef
0x0000000c | 0x00000000
=======================
`

// registers have a tool that answers with a dump, if asked with arguments that
// fit a pattern of the shell.
func registers(t *testing.T, pattern, script string) *Registers {
	t.Helper()
	s := install(t, map[string]string{"mstreg": `case "$*" in
` + pattern + `) ` + script + `
;;
*) echo "-E- arguments $*" >&2; exit 1;; esac`})
	r, err := s.Registers("0000:17:00.0")
	must(t, err)
	return r
}

const printDump = "cat <<'E'\n" + dump + "E"

func TestRegisterRead(t *testing.T) {
	r := registers(t, `"-d 0000:17:00.0 --reg_id 0x402d --reg_len 0x10 --get"`, printDump)
	b, err := r.Access(t.Context(), register.IDMLOCK, register.Read, make([]byte, 16))
	if want := "\x00\x00\x00\x01\x00\x00\x00\x00\xde\xad\xbe\xef\x00\x00\x00\x00"; err != nil || string(b) != want {
		t.Errorf("got %x, %v, want %x", b, err, want)
	}
	r = registers(t, `"-d 0000:17:00.0 --reg_id 0x9060 --reg_len 0x10 --indexes 0x0.0:32=0x7,0xc.0:32=0x1 --get"`, printDump)
	if _, err := r.Access(t.Context(), register.IDMCQS, register.Read, []byte{0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}); err != nil {
		t.Error(err)
	}
}

func TestRegisterWrite(t *testing.T) {
	r := registers(t, `"-d 0000:17:00.0 --reg_id 0x9028 --reg_len 0x8 --set 0x0.0:32=0x0,0x4.0:32=0x48 --yes"`, "true")
	data := []byte{0, 0, 0, 0, 0, 0, 0, 0x48}
	if b, err := r.Access(t.Context(), register.IDMFRL, register.Write, data); err != nil || string(b) != string(data) {
		t.Errorf("got %x, %v", b, err)
	}
}

// TestNoKeyOnCommandLine: the key of MLOCK does not leave, unless the site allows
// it; states can be read.
func TestNoKeyOnCommandLine(t *testing.T) {
	r := registers(t, `*`, "true")
	key := []byte{0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8}
	if _, err := r.Access(t.Context(), register.IDMLOCK, register.Write, key); !errors.Is(err, ErrKeyOnCommandLine) {
		t.Errorf("got %v", err)
	}
	r.KeysOnCommandLine = true
	if _, err := r.Access(t.Context(), register.IDMLOCK, register.Write, key); err != nil {
		t.Errorf("allowed: got %v", err)
	}
}

func TestRegisterErrors(t *testing.T) {
	r := registers(t, `*`, `echo "-E- Failed to send access register: Register access bad parameter" >&2; exit 1`)
	_, err := r.Access(t.Context(), register.IDMDSR, register.Read, make([]byte, 16))
	if status, ok := errors.AsType[*register.Error](err); !ok || status.Status != register.BadParameter || !strings.Contains(err.Error(), "0000:17:00.0: MDSR read") {
		t.Errorf("got %v", err)
	}
	for _, n := range []int{0, 3, 1028} {
		if _, err := r.Access(t.Context(), register.IDMDSR, register.Read, make([]byte, n)); err == nil || !strings.Contains(err.Error(), "multiple of 4") {
			t.Errorf("%d bytes: got %v", n, err)
		}
	}
}

func TestParseDumpRefuses(t *testing.T) {
	if b, err := parseDump(dump, 16); err != nil || len(b) != 16 {
		t.Fatalf("got %x, %v", b, err)
	}
	for name, text := range map[string]string{
		"empty": "", "too short": strings.Replace(dump, "0x0000000c | 0x00000000\n", "", 1),
		"too long": dump + "0x00000010 | 0x00000000\n", "a gap": strings.Replace(dump, "0x00000004", "0x00000008", 1),
		"out of order": strings.Replace(dump, "0x00000000 |", "0x00000004 |", 1), "no number": strings.Replace(dump, "0xdeadbeef", "deadbeef", 1),
		"too large": strings.Replace(dump, "0xdeadbeef", "0x1deadbeef", 1),
	} {
		if b, err := parseDump(text, 16); err == nil {
			t.Errorf("%s: got %x, want an error", name, b)
		}
	}
}

func FuzzDump(f *testing.F) {
	f.Add(dump, 16)
	f.Add("0x0 | 0x1", 4)
	f.Fuzz(func(t *testing.T, text string, length int) {
		if length < 0 || length > maxRegister {
			return
		}
		if b, err := parseDump(text, length); err == nil && len(b) != length {
			t.Errorf("%d bytes, want %d", len(b), length)
		}
	})
}
