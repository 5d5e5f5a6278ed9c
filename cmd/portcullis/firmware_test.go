package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/cmd/portcullis/cli"
	"portcullis/firmware/imagetest"
)

const firmwareData = "../../firmware/"

// firmwareRun runs the program in a directory of its own.
func firmwareRun(t *testing.T, stdin string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e strings.Builder
	code = run(t.Context(), append([]string{"firmware"}, args...), strings.NewReader(stdin), &o, &e)
	return code, o.String(), e.String()
}

// pinsFile pins the test keys, as an operator does it.
func pinsFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pins.yaml")
	if code, _, errs := firmwareRun(t, "", "pin", firmwareData+"testdata/synthetic/fs4-rsa2048-rsa4096.bin", "--pins", file, "--yes"); code != cli.ExitOK {
		t.Fatalf("pin: exit %d\n%s", code, errs)
	}
	return file
}

// imageFile writes an image of the generator, with both signatures.
func imageFile(t *testing.T, change func(s *imagetest.Spec)) string {
	t.Helper()
	s := imagetest.New()
	change(s)
	b := s.Build()
	imagetest.Sign4096(b, imagetest.Key4096(), s.KeyUUID)
	imagetest.Sign2048(b, imagetest.Key2048(), s.KeyUUID)
	return writeTemp(t, b)
}

func writeTemp(t *testing.T, b []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "image.bin")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestFirmwareVerify holds exit codes and words to the verdicts.
func TestFirmwareVerify(t *testing.T) {
	pins := pinsFile(t)
	synthetic := func(name string) string { return firmwareData + "testdata/synthetic/" + name }
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(policy, []byte("boards: [{psid: TST0000000001, floor: 22.47.1088}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"signed", []string{"--pins", pins, synthetic("fs4-rsa2048.bin")}, cli.ExitOK, "fs4-rsa2048.bin: valid; no policy"},
		{"signed and wanted", []string{"--pins", pins, "--policy", policy, synthetic("fs4-rsa2048-rsa4096.bin")}, cli.ExitOK, "valid, and the policy allows it"},
		{"tampered", []string{"--pins", pins, synthetic("fs4-tampered.bin")}, cli.ExitInvalid, "signature-mismatch"},
		{"unsigned", []string{"--pins", pins, synthetic("fs4-unsigned.bin")}, cli.ExitNotSigned, "not signed"},
		{"a digest", []string{"--pins", pins, synthetic("fs4-digest.bin")}, cli.ExitNotSigned, "a forger can write that"},
		{"nothing pinned", []string{synthetic("fs4-rsa2048.bin")}, cli.ExitNotVerifiable, "no-pins"},
		{"no firmware", []string{"--pins", pins, pins}, cli.ExitNotVerifiable, "unknown-layout"},
		{"below the floor", []string{"--pins", pins, "--policy", policy, imageFile(t, func(s *imagetest.Spec) { s.Version[2]-- })}, cli.ExitRefused, "version-floor"},
		{"debug without a policy", []string{"--pins", pins, imageFile(t, func(s *imagetest.Spec) { s.Flags |= imagetest.FlagDebug })}, cli.ExitRefused, "debug-firmware"},
		{"FS5", []string{"--pins", pins, imageFile(t, func(s *imagetest.Spec) { s.Format = 5 })}, cli.ExitNotVerifiable, "opaque"},
		{"a package", []string{"--pins", pins, firmwareData + "mfa2/testdata/mlxsw_spectrum3-30.2007.1168.mfa2"}, cli.ExitNotSigned, "MT_0000000466"},
		{"one of a package", []string{"--image", "12", firmwareData + "mfa2/testdata/mlxsw_spectrum3-30.2007.1168.mfa2"}, cli.ExitNotSigned, "PSID MT_0000000468"},
		{"none of a package", []string{"--image", "13", firmwareData + "mfa2/testdata/mlxsw_spectrum3-30.2007.1168.mfa2"}, cli.ExitError, ""},
		{"a file that is not there", []string{"--pins", pins, "absent.bin"}, cli.ExitError, ""},
		{"pins that are none", []string{"--pins", policy, synthetic("fs4-rsa2048.bin")}, cli.ExitError, ""},
		{"no file", nil, cli.ExitUsage, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, errs := firmwareRun(t, "", append([]string{"verify"}, tt.args...)...)
			if code != tt.code || !strings.Contains(out, tt.want) {
				t.Errorf("exit %d, want %d with %q\n%s%s", code, tt.code, tt.want, out, errs)
			}
			if code != cli.ExitOK && code != cli.ExitError && code != cli.ExitUsage && errs != "" {
				t.Errorf("a verdict is told as an error, too: %s", errs)
			}
		})
	}
}

// TestFirmwareJSON shows what programs read.
func TestFirmwareJSON(t *testing.T) {
	image, err := os.ReadFile(firmwareData + "testdata/synthetic/fs4-tampered.bin")
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := firmwareRun(t, string(image), "verify", "--json", "--pins", pinsFile(t), "-")
	var v struct {
		Verdict  string
		Accepted *bool
		Images   []struct {
			Verdict  string
			Signers  []any
			Identity struct {
				Digest string
				Info   struct{ PSID, Version string }
			}
			Steps []struct{ Step, Outcome, Code string }
		}
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("exit %d: %v\n%s%s", code, err, out, errs)
	}
	i := v.Images[0]
	if code != cli.ExitInvalid || v.Verdict != "invalid" || *v.Accepted || len(i.Signers) != 0 || i.Identity.Info.PSID != "TST0000000001" || len(i.Identity.Digest) != 64 {
		t.Errorf("exit %d\n%s", code, out)
	}
	if last := i.Steps[len(i.Steps)-1]; last.Outcome != "fail" || last.Code != "signature-mismatch" {
		t.Errorf("the last step is %+v", last)
	}
}

func TestFirmwareDescribe(t *testing.T) {
	hostile := imageFile(t, func(s *imagetest.Spec) { s.Name, s.PSID, s.BaseGUID = "\x1b[2Jgone\r\n", "TST\x07", 0x0002c90300bb0000 })
	code, out, errs := firmwareRun(t, "", "describe", hostile)
	for _, want := range []string{`\x1b[2Jgone\x0d\x0a`, `TST\x07`, "22.47.1088", "ConnectX-7", "0x0002c90300bb0000", "addresses changed     yes", "IMAGE_SIGNATURE_512", "do not prove where"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not show %q", want)
		}
	}
	if code != cli.ExitOK || strings.ContainsAny(out+errs, "\x1b\r\x07") {
		t.Errorf("exit %d, %q", code, out+errs)
	}
	code, out, _ = firmwareRun(t, "", "describe", firmwareData+"mfa2/testdata/mlxsw_spectrum2-29.2000.2308.mfa2")
	if rows := strings.Count(out, "29.2000.2308"); code != cli.ExitOK || rows != 15 {
		t.Errorf("exit %d, %d images, want 15\n%s", code, rows, out)
	}
	broken := imagetest.New().Build()
	broken[imagetest.FirstAt] ^= 1
	if code, out, _ := firmwareRun(t, "", "describe", writeTemp(t, broken)); code != cli.ExitOK || !strings.Contains(out, "problems: MAIN_CODE at 0x6000: its checksum") {
		t.Errorf("a damaged image: exit %d\n%s", code, out)
	}
	if code, out, _ := firmwareRun(t, "", "describe", writeTemp(t, broken[:0x8000])); code != cli.ExitError || !strings.Contains(out, "run over the end") {
		t.Errorf("half an image: exit %d\n%s", code, out)
	}
	data, err := os.ReadFile(firmwareData + "mfa2/testdata/mlxsw_spectrum2-29.2000.2308.mfa2")
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-1] ^= 1
	if code, _, errs := firmwareRun(t, "", "describe", writeTemp(t, data)); code != cli.ExitError || !strings.Contains(errs, "digest of the file") || !strings.Contains(errs, "fetch the file again") {
		t.Errorf("a changed package: exit %d\n%s", code, errs)
	}
}

// TestFirmwarePin shows that no key is trusted because it is in an image.
func TestFirmwarePin(t *testing.T) {
	const (
		genuine = firmwareData + "testdata/synthetic/fs4-rsa2048.bin"
		print2  = "sha256:efb7c216633f57cd0a6ed1f0ff17e54557e6e52625988d796ff813820e11ca18"
		print4  = "sha256:55dd8a24ec777abe319caa46c864ccecee6afc003467cccff021163cf19a0b43"
	)
	file := filepath.Join(t.TempDir(), "pins.yaml")
	read := func() string {
		data, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(data)
	}
	code, out, _ := firmwareRun(t, "", "pin", genuine, "--pins", file)
	if code != cli.ExitError || !strings.Contains(out, print2) || !strings.Contains(out, "nothing was pinned") || read() != "" {
		t.Errorf("without being asked: exit %d\n%s%s", code, out, read())
	}
	if code, _, errs := firmwareRun(t, "", "pin", genuine, "--pins", file, "--fingerprint", strings.Replace(print2, "efb7", "efb8", 1)); code != cli.ExitError || !strings.Contains(errs, "no key of the file has the fingerprint") || read() != "" {
		t.Errorf("another fingerprint: exit %d\n%s%s", code, errs, read())
	}
	if code, _, errs := firmwareRun(t, "", "pin", genuine, "--pins", file, "--fingerprint", "efb7"); code != cli.ExitUsage {
		t.Errorf("a short fingerprint: exit %d\n%s", code, errs)
	}
	if code, _, errs := firmwareRun(t, "", "pin", genuine, "--yes"); code != cli.ExitUsage {
		t.Errorf("no file: exit %d\n%s", code, errs)
	}
	code, out, errs := firmwareRun(t, "", "pin", genuine, "--pins", file, "--yes", "--name", "vendor", "--by", "alice")
	if text := read(); code != cli.ExitOK || !strings.Contains(text, print2) || strings.Contains(text, print4) || !strings.Contains(text, "added_by: alice") || !strings.Contains(out, "pinned in") {
		t.Errorf("only the key that signed is pinned: exit %d\n%s%s%s", code, out, errs, text)
	}
	if code, _, errs := firmwareRun(t, "", "pin", genuine, "--pins", file, "--fingerprint", print4); code != cli.ExitOK || !strings.Contains(read(), print4) || !strings.Contains(read(), print2) {
		t.Errorf("a key that is named: exit %d\n%s%s", code, errs, read())
	}

	before := read()
	own := imagetest.NewKey(2048)
	s := imagetest.New()
	s.Key2048 = &own.PublicKey
	b := s.Build()
	imagetest.Sign2048(b, own, s.KeyUUID)
	attack := writeTemp(t, b)
	if code, _, errs := firmwareRun(t, "", "pin", attack, "--pins", file, "--yes"); code != cli.ExitError || !strings.Contains(errs, "another one is pinned under this UUID") || read() != before {
		t.Errorf("another key under a pinned UUID: exit %d\n%s%s", code, errs, read())
	}
	if code, out, _ := firmwareRun(t, "", "verify", "--pins", file, attack); code != cli.ExitInvalid || !strings.Contains(out, "key-differs") {
		t.Errorf("an image of the attacker: exit %d\n%s", code, out)
	}
	if code, _, errs := firmwareRun(t, "", "pin", firmwareData+"testdata/synthetic/fs4-unsigned.bin", "--pins", file, "--yes"); code != cli.ExitError || !strings.Contains(errs, "none of the keys signed") {
		t.Errorf("an unsigned image: exit %d\n%s", code, errs)
	}
	broken := bytes.Clone(b)
	broken[imagetest.FirstAt] ^= 1
	if code, _, errs := firmwareRun(t, "", "pin", writeTemp(t, broken), "--pins", file, "--yes"); code != cli.ExitError || !strings.Contains(errs, "is damaged") || read() != before {
		t.Errorf("a damaged image: exit %d\n%s", code, errs)
	}
}

// TestFirmwareMistakes checks words and hints for common mistakes.
func TestFirmwareMistakes(t *testing.T) {
	image := firmwareData + "testdata/synthetic/fs4-rsa2048-rsa4096.bin"
	dir := t.TempDir()
	absent := filepath.Join(dir, "absent", "pins.yaml")
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string // all of standard error
	}{
		{"an image below 0", []string{"describe", "--image", "-5", image}, cli.ExitUsage, `firmware describe: invalid argument "-5" for "--image" flag: want the index of an image, 0 or more
portcullis: hint: portcullis firmware describe --help names the options`},
		{"an image below 0, judged", []string{"verify", "--image=-1", image}, cli.ExitUsage, `firmware verify: invalid argument "-1" for "--image" flag: want the index of an image, 0 or more
portcullis: hint: portcullis firmware verify --help names the options`},
		{"no file, described", []string{"describe", absent}, cli.ExitError, "firmware describe: open " + absent + ": no such file or directory"},
		{"no file, pinned", []string{"pin", absent}, cli.ExitError, "firmware pin: open " + absent + ": no such file or directory"},
		{"pins that are a folder", []string{"verify", "--pins", dir, image}, cli.ExitError, "firmware verify: read " + dir + ": is a directory"},
		{"no pins", []string{"verify", "--pins", absent, image}, cli.ExitError, "firmware verify: open " + absent + `: no such file or directory
portcullis: hint: portcullis firmware pin FILE --pins ` + absent + " creates it; or name another file with --pins"},
		{"no policy", []string{"verify", "--policy", absent, image}, cli.ExitError, "firmware verify: open " + absent + `: no such file or directory
portcullis: hint: name the site's policy with --policy, or verify without one; docs/understand/firmware.md has its fields`},
		{"no folder for pins", []string{"pin", "--yes", "--pins", absent, image}, cli.ExitError, "firmware pin: write " + absent + ": there is no folder " + filepath.Dir(absent) + `
portcullis: hint: create the folder, or name another file with --pins`},
	} {
		code, _, errs := firmwareRun(t, "", tt.args...)
		if code != tt.code || errs != "portcullis: "+tt.want+"\n" {
			t.Errorf("%s: exit %d, want %d\n got %s\nwant portcullis: %s", tt.name, code, tt.code, errs, tt.want)
		}
	}
}
