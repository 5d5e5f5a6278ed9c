package main

import (
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	agefile "filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"portcullis/api/fabric/query"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/driver/factfile"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/vault"
)

// site is a directory with the keys of a fabric, and all that is printed there.
type site struct {
	t    *testing.T
	dir  string
	said strings.Builder
	scan *keystest.Scanner
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

// do runs portcullis and returns its output. Words that begin with @ are files of the site.
func (s *site) do(want int, line string) string {
	s.t.Helper()
	args := strings.Fields(line)
	for i := range args {
		if name, ok := strings.CutPrefix(args[i], "@"); ok {
			args[i] = s.path(name)
		}
	}
	var out, complaint strings.Builder
	code := run(s.t.Context(), args, strings.NewReader(""), &out, &complaint)
	s.said.WriteString(out.String() + complaint.String())
	if code != want {
		s.t.Fatalf("%s: exit code %d, want %d; said %s", line, code, want, complaint.String())
	}
	return out.String() + complaint.String()
}

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// newSite makes one with a root, an identity, and the keys of 30 devices.
func newSite(t *testing.T, mode keys.Mode) *site {
	s := &site{t: t, dir: t.TempDir(), scan: &keystest.Scanner{}}
	id, err := agefile.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	s.write("identity", "# mine\n"+id.String()+"\n")
	s.write("recipients", id.Recipient().String()+"\n")
	s.do(cli.ExitOK, "keys root @root")
	s.rotate(mode, 1)
	return s
}

// rotate assigns keys of an epoch to all devices.
func (s *site) rotate(mode keys.Mode, epoch keys.Epoch) {
	s.t.Helper()
	files, err := factfile.Open(s.path("state"), slog.New(slog.DiscardHandler))
	if err != nil {
		s.t.Fatal(err)
	}
	defer files.Close()
	root, err := vault.FileRoot(s.path("root"))
	if err != nil {
		s.t.Fatal(err)
	}
	chacha := rand.NewChaCha8([32]byte{byte(epoch)})
	store, err := keystore.Open(files, root, chacha)
	if err != nil {
		s.t.Fatal(err)
	}
	var source keys.Source = keys.Random{Reader: chacha}
	if mode == keys.ModeDerived {
		m, err := store.Master()
		if err != nil {
			s.t.Fatal(err)
		}
		s.scan.Bytes("master", m.Reveal())
		source = keys.Derived{Master: m}
	}
	var facts []sm.Fact
	for g := ib.GUID(1); g <= 30; g++ {
		h, err := source.Make(keys.MKey, g, epoch, time.Unix(7, 0))
		if err != nil {
			s.t.Fatal(err)
		}
		if g < 3 {
			s.secret(h.Key)
		}
		facts = append(facts, sm.KeyFactOf(keys.Record{Kind: keys.MKey, GUID: g, Current: h}))
	}
	if err := store.Save(facts); err != nil {
		s.t.Fatal(err)
	}
}

// secret has a key looked for in all that is printed.
func (s *site) secret(k keys.Key) {
	var b [8]byte
	for i := range b {
		b[i] = byte(k.Reveal() >> (56 - 8*i))
	}
	s.scan.Bytes("key", b[:])
}

// contents opens the state of a directory.
func (s *site) contents(dir, root string) *keystore.Contents {
	s.t.Helper()
	r, err := vault.FileRoot(s.path(root))
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(s.path(dir), "facts"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	facts, err := factfile.Read("facts", f)
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := keystore.Read(facts, r)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

const (
	makeKit  = "keys escrow create --facts @state/facts --root @root --recipients @recipients --out @"
	rehearse = " --identity @identity --digests @digests"
)

// TestEscrow makes a kit, rehearses it, loses the store, and recovers all keys.
func TestEscrow(t *testing.T) {
	for _, mode := range []keys.Mode{keys.ModeDerived, keys.ModeRandom} {
		t.Run(string(mode), func(t *testing.T) {
			s := newSite(t, mode)
			s.do(cli.ExitOK, makeKit+"kit")
			s.write("digests", s.do(cli.ExitOK, "keys digests --facts @state/facts --root @root"))
			said := s.do(cli.ExitOK, "keys rehearse @kit"+rehearse)
			equal := map[keys.Mode]string{keys.ModeDerived: `DERIVED, EQUAL +30\n`, keys.ModeRandom: `STORED, EQUAL +30\n`}[mode]
			for _, want := range []string{`KEYS +30\n`, `MISSING +0\n`, `DEVICES +30\n`, equal} {
				if !regexp.MustCompile(want).MatchString(said) {
					t.Errorf("the rehearsal does not say %s:\n%s", want, said)
				}
			}

			s.do(cli.ExitOK, "keys rehearse @kit --proof @proof"+rehearse)
			k := &keyKeeper{Observer: query.New(query.Options{})}
			said = s.do(cli.ExitOK, "keys rehearsed @proof --socket "+k.serve(t))
			if !strings.Contains(said, "has all 30 keys of 30 devices") || k.rehearsed.Keys != 30 || len(k.rehearsed.Seal) != 64 {
				t.Errorf("the service is told %+v; said %s", k.rehearsed, said)
			}

			before := s.contents("state", "root")
			s.do(cli.ExitOK, "keys root @other-root")
			s.do(cli.ExitOK, "keys recover @kit --identity @identity --root @other-root --out @again")
			after := s.contents("again", "other-root")
			bare := cmp.Comparer(func(a, b keys.Key) bool { return a == b })
			if d := cmp.Diff(before.Records, after.Records, bare); d != "" || !cmp.Equal(before.Master.Reveal(), after.Master.Reveal()) {
				t.Errorf("recovered (-want +got):\n%s", d)
			}

			s.rotate(mode, 2)
			s.write("digests", s.do(cli.ExitOK, "keys digests --facts @state/facts --root @root"))
			s.do(map[keys.Mode]int{keys.ModeDerived: cli.ExitOK, keys.ModeRandom: cli.ExitError}[mode], "keys rehearse @kit"+rehearse)
			s.do(cli.ExitOK, "keys recover @kit --identity @identity --root @other-root --out @ahead --epoch 2 --opensm")
			if mode == keys.ModeDerived {
				now := s.contents("state", "root").Records
				for i, r := range s.contents("ahead", "other-root").Records {
					if try := r.Try(); len(try) != 2 || try[1].Key != now[i].Current.Key {
						t.Errorf("%v is not tried with the key of epoch 2", r.GUID)
					}
				}
			}

			files, err := os.ReadFile(s.path("ahead/guid2mkey"))
			if err != nil || len(s.scan.Find(files)) == 0 {
				t.Errorf("guid2mkey has no keys: %v", err)
			}
			s.scan.Clean(t, "what was printed", []byte(s.said.String()))
			if err := os.Remove(s.path("ahead/guid2mkey")); err != nil {
				t.Fatal(err)
			}
			s.scan.CleanFiles(t, s.dir)
		})
	}
}

func TestKeysRefuse(t *testing.T) {
	s := newSite(t, keys.ModeDerived)
	s.do(cli.ExitOK, makeKit+"kit")
	digests := s.do(cli.ExitOK, "keys digests --facts @state/facts --root @root")
	s.write("digests", digests)
	s.write("altered", strings.Replace(digests, `"epoch": 1`, `"epoch": 2`, 1))
	s.write("unsealed", regexp.MustCompile(`,\s*"seal": "[0-9a-f]+"`).ReplaceAllString(digests, ""))
	stranger, err := agefile.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	s.write("stranger", stranger.String())
	s.do(cli.ExitOK, "keys root @wrong-root")
	kit, err := os.ReadFile(s.path("kit"))
	if err != nil {
		t.Fatal(err)
	}
	s.write("cut", string(kit[:len(kit)-200]))
	s.write("broken-digests", `{"fabric":"`+strings.Repeat("0", 32)+`","keys":[]}`)
	facts, err := os.ReadFile(s.path("state/facts"))
	if err != nil {
		t.Fatal(err)
	}
	s.write("half-facts", string(facts[:len(facts)-9]))
	for _, tt := range []struct {
		line string
		code int
		want string
	}{
		{makeKit + "kit", cli.ExitError, "exists already"},
		{"keys root @root", cli.ExitError, "exists already"},
		{"keys escrow create --facts @state/facts --root @wrong-root --recipients @recipients --out @x", cli.ExitError, "does not open it"},
		{"keys escrow create --facts @half-facts --root @root --recipients @recipients --out @x", cli.ExitError, "not all of one"},
		{"keys escrow create --facts @state/facts --root @root --recipients @identity --out @x", cli.ExitError, "no list of age recipients"},
		{"keys escrow create --root @root --recipients @recipients --out @x", cli.ExitUsage, "no service is named"},
		{"keys digests --facts @state/facts", cli.ExitUsage, "--root is needed"},
		{"keys export --facts @state/facts --root @root", cli.ExitUsage, "--out is needed"},
		{"keys export --facts @state/facts --root @wrong-root --out @x", cli.ExitError, "does not open it"},
		{"keys rehearse @kit --identity @stranger --digests @digests", cli.ExitError, "none of the 1 identities"},
		{"keys rehearse @kit --identity @recipients --digests @digests", cli.ExitError, "no file of age identities"},
		{"keys rehearse @cut" + rehearse, cli.ExitError, "take another copy"},
		{"keys rehearse @kit --identity @identity --digests @broken-digests", cli.ExitError, "name the kit of that fabric"},
		{"keys rehearse @kit --identity @identity", cli.ExitUsage, "--digests is needed"},
		{"keys rehearse @kit --proof @digests" + rehearse, cli.ExitError, "exists already"},
		{"keys rehearse @kit --identity @identity --digests @altered --proof @x", cli.ExitError, "the list was altered"},
		{"keys rehearse @kit --identity @identity --digests @unsealed --proof @x", cli.ExitError, "create one with: portcullis keys digests"},
		{"keys rehearsed @digests", cli.ExitError, "keys rehearse KIT --proof FILE writes one"},
		{"keys rehearsed @unsealed", cli.ExitError, "no proof of a rehearsal"},
		{"keys recover @kit --identity @identity --root @root --out @state", cli.ExitError, "exists"},
	} {
		if said := s.do(tt.code, tt.line); !strings.Contains(said, tt.want) {
			t.Errorf("%s said %q, want %q", tt.line, said, tt.want)
		}
	}
	if _, err := os.Stat(s.path("x")); err == nil {
		t.Error("a kit was left by a command that failed")
	}
	s.scan.Clean(t, "what was printed", []byte(s.said.String()))
}

func TestKeysInspect(t *testing.T) {
	s := &site{t: t, dir: t.TempDir()}
	s.write("guid2mkey", "0x10 0x1122334455667799\n\n0x11 0x0\n\n0x12 0x1\n\n")
	s.write("guid2vskey", "0x10 0x8f3a5c917b2e4d60\n\n")
	s.write("opensm.conf", "m_key 0x0000000000000001\nlmc 0\n")
	said := s.do(cli.ExitOK, "keys inspect @. --options @opensm.conf")
	for _, want := range []string{`guid2mkey +m_key +3 +2 +1\n`, `guid2vskey +vs_key +1 +1 +0\n`, `one M_Key for all devices; weak: yes`} {
		if !regexp.MustCompile(want).MatchString(said) {
			t.Errorf("%s is not in\n%s", want, said)
		}
	}
	s.write("guid2mkey", "0x10 0x1122334455667799 x\n")
	if said := s.do(cli.ExitError, "keys inspect @."); !strings.Contains(said, "guid2mkey:1: want a port GUID and its key") {
		t.Errorf("said %q", said)
	}
}
