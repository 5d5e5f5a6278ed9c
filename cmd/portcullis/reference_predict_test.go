package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/api"
	"portcullis/api/apitest"
	v1 "portcullis/api/v1"
	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
	"portcullis/attest/reference/predict"
	"portcullis/attest/reference/predict/predicttest"
	"portcullis/cmd/portcullis/cli"
	"portcullis/packaging/image/uki"
	"portcullis/packaging/testenv"
)

// realLogs has event logs of boots under OVMF.
const realLogs = "../../attest/reference/predict/testdata/"

// writeImage writes an image as make image does, of parts that no machine could boot.
func writeImage(t *testing.T, dir, release string) string {
	t.Helper()
	stub, err := os.ReadFile("/usr/lib/systemd/boot/efi/linuxx64.efi.stub")
	if err != nil {
		testenv.Need(t, errors.Join(err, errors.New("install systemd-boot-efi")))
	}
	var b bytes.Buffer
	err = uki.Build(&b, uki.Parts{Stub: stub, Kernel: predicttest.Kernel(release), Initrd: []byte("initrd"), Cmdline: "console=ttyS0 quiet panic=-1", OSRelease: "ID=x\n"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "image-"+release+".efi")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestReferencePredict predicts with the known data of machines from several sources.
func TestReferencePredict(t *testing.T) {
	s := apitest.Start(t, apitest.NewSite(t), func(o *api.Options) {
		o.Reference = &referenceKeeper{one: v1.Reference{Name: "gpu/3", Class: "gpu", Version: 3, Registers: learnedOf(t)}}
	})
	dir := t.TempDir()
	image, old := writeImage(t, dir, "6.1.0"), writeImage(t, dir, "5.10.0")
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	// PCR 9 of this command line begins so in the log of a real boot.
	const cmdline = "9    1      a8a7090c096e7906"
	plain := " --log " + realLogs + "uki-plain.log"
	for _, tt := range []struct {
		args string
		code int
		want []string
	}{
		{image, cli.ExitOK, []string{"6.1.0", "systemd 252", cmdline, "12   none"}},
		{image + plain + " --out " + filepath.Join(dir, "new"), cli.ExitOK, []string{"0    3e695b1035f9b7fa", cmdline, "EV_EFI_GPT_EVENT"}},
		{image + plain + " --out " + filepath.Join(dir, "new"), cli.ExitError, []string{"file exists"}},
		{image + plain + " --ignore 5/2", cli.ExitOK, []string{"5    one of several", "5    2      any event"}},
		{image + plain + " --ignore 4/2", cli.ExitUsage, []string{"no event of PCR 4 may be ignored"}},
		{image + " --base gpu/3", cli.ExitOK, []string{cmdline, "EV_S_CRTM_VERSION"}},
		{image + " --base gpu/4", cli.ExitError, []string{"no such set"}},
		{image + " --secure-boot-off", cli.ExitOK, []string{"7    65caf8dd1e0ea7a6"}},
		{image + " --phases enter-initrd", cli.ExitOK, []string{"11   value"}},
		{image + " --log " + realLogs + "uki-secure.log", cli.ExitError, []string{"PCR 7", "is not signed"}},
		{image + " --pk " + empty + " --kek " + empty + " --db " + empty + " --dbx " + empty, cli.ExitError, []string{"PCR 7", "is not signed"}},
		{image + " --pk " + empty, cli.ExitUsage, []string{"1 of the Secure Boot variables"}},
		{image + " --pk " + image + " --kek " + empty + " --db " + empty + " --dbx " + empty, cli.ExitError, []string{"efivars"}},
		{image + plain + " --base gpu/3", cli.ExitUsage, []string{"--log and --base exclude"}},
		{image + " --out " + filepath.Join(dir, "none"), cli.ExitError, []string{"no set can be made"}},
		{image + " --log " + image, cli.ExitError, []string{"event log"}},
		{old, cli.ExitError, []string{"known from 6.1 on"}},
		{empty, cli.ExitError, []string{"PE image"}},
	} {
		t.Run(tt.args, func(t *testing.T) {
			args := append([]string{"--service", s.URL, "--ca", s.CAFile, "--token-file", s.OperatorFile, "reference", "predict"}, strings.Fields(tt.args)...)
			var out, complaint bytes.Buffer
			if code := run(t.Context(), args, strings.NewReader(""), &out, &complaint); code != tt.code {
				t.Errorf("exit %d, want %d: %s", code, tt.code, complaint.String())
			}
			for _, want := range tt.want {
				if !strings.Contains(out.String()+complaint.String(), want) {
					t.Errorf("no %q in:\n%s%s", want, out.String(), complaint.String())
				}
			}
		})
	}
	b, err := os.ReadFile(filepath.Join(dir, "new"))
	if err != nil {
		t.Fatal(err)
	}
	var p v1.Prediction
	if err := json.Unmarshal(b, &p); err != nil || len(p.Registers) != 14 {
		t.Errorf("the file has %d registers, want 14: %v", len(p.Registers), err)
	}
}

// learnedOf returns the registers of a machine that boots another image.
func learnedOf(t *testing.T) []reference.Register {
	t.Helper()
	text, err := os.ReadFile(realLogs + "uki-plain.log")
	if err != nil {
		t.Fatal(err)
	}
	l, err := eventlog.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	p, err := predict.FromLogs(l)
	if err != nil {
		t.Fatal(err)
	}
	return p.Registers
}
