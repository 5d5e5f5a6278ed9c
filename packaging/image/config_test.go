package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// certificate returns a certificate as PEM.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1)}, &x509.Certificate{}, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// folder writes a site's folder of files by name; content that begins with "->" is a link.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		err := error(nil)
		if target, link := strings.CutPrefix(content, "->"); link {
			err = os.Symlink(target, file)
		} else {
			err = os.WriteFile(file, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func with(t *testing.T, more map[string]string) map[string]string {
	files := map[string]string{"agent.yaml": "service: https://portcullis.example\n", "ca.pem": certificate(t)}
	maps.Copy(files, more)
	return files
}

func TestReadSite(t *testing.T) {
	t.Parallel()
	s, err := readSite(folder(t, with(t, map[string]string{
		"image.yaml":             "on_success: reboot\nconsoles: [ttyS1]\ncmdline: \" loglevel=7 \"\nvendor_tools: false\n",
		"network/10-lan.network": "[Match]\n", "firmware/pins.yaml": "x", "root/usr/lib/firmware/card.bin": "y", "root/etc/link": "->../usr",
	})))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"etc/link", "etc/portcullis/agent.yaml", "etc/portcullis/ca.pem", "etc/portcullis/firmware/pins.yaml", "etc/systemd/network/10-lan.network",
		"usr/lib/firmware/card.bin",
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(s.files)), want); d != "" {
		t.Errorf("files (-got +want):\n%s", d)
	}
	if got, want := s.cmdline(), "console=ttyS1 quiet panic=30 systemd.show_status=yes loglevel=7"; got != want {
		t.Errorf("command line %q, want %q", got, want)
	}
	if s.OnSuccess != reboot || s.OnFailure != stay || s.VendorTools == nil || *s.VendorTools {
		t.Errorf("settings %+v", s.settings)
	}
	tr := newTree()
	if err := s.put(tr); err != nil {
		t.Fatal(err)
	}
	if tr.nodes["etc/link"].link != "../usr" || tr.nodes["etc/portcullis/ca.pem"].size == 0 {
		t.Errorf("tree has %+v", tr.nodes)
	}
	if err := s.put(tr); err == nil {
		t.Error("files that the image has already were replaced")
	}
}

func TestReadSiteRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		more map[string]string
		want string
	}{
		"unknown file":           {map[string]string{"notes.txt": ""}, "notes.txt: is not known"},
		"unknown setting":        {map[string]string{"image.yaml": "on_succes: stay\n"}, "on_succes"},
		"kexec":                  {map[string]string{"image.yaml": "on_success: kexec\n"}, "kexec is not offered"},
		"unknown on_failure":     {map[string]string{"image.yaml": "on_failure: retry\n"}, "on_failure"},
		"no service":             {map[string]string{"agent.yaml": "host: h1\n"}, "service is not set"},
		"unknown key of agent":   {map[string]string{"agent.yaml": "service: https://a\nservices: b\n"}, "services"},
		"another ca":             {map[string]string{"agent.yaml": "service: https://a\nca: /other\n"}, "leave it empty"},
		"host id that cannot be": {map[string]string{"agent.yaml": "service: https://a\nhost: \"{serial} x\"\n"}, "host id"},
		"ca is no PEM":           {map[string]string{"ca.pem": "certificate"}, "no certificate"},
		"ca is a key":            {map[string]string{"ca.pem": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}, "want certificates"},
		"network file":           {map[string]string{"network/run.sh": ""}, "want files that end in"},
		"link to firmware":       {map[string]string{"firmware/pins.yaml": "->/etc/passwd"}, "want files"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := readSite(folder(t, with(t, tt.more))); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
	if _, err := readSite(folder(t, map[string]string{"ca.pem": certificate(t)})); err == nil || !strings.Contains(err.Error(), "agent.yaml") {
		t.Errorf("without agent.yaml: %v", err)
	}
	if _, err := readSite(folder(t, map[string]string{"agent.yaml": "service: https://a\n"})); err == nil || !strings.Contains(err.Error(), "ca.pem") {
		t.Errorf("without ca.pem: %v", err)
	}
	if _, err := readSite(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that is not there was taken")
	}
}

// TestAfter checks that a unit that ends the machine is a service, and one that leaves it on is a target.
func TestAfter(t *testing.T) {
	t.Parallel()
	s := defaults()
	name, text := s.handover()
	if name != "portcullis-handover.service" || !strings.Contains(text, "Requires=portcullis-agent.service\n") || !strings.Contains(text, "SuccessAction=poweroff\n") {
		t.Errorf("on success: %s\n%s", name, text)
	}
	name, text = s.refused()
	if name != "portcullis-refused.target" || strings.Contains(text, "Action") || !strings.Contains(text, "not handed over, and stays on") {
		t.Errorf("on failure: %s\n%s", name, text)
	}
}
