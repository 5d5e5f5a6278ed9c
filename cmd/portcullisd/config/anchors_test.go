package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAnchorsAreChecked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"{file: /a/b}", ""},
		{"{syslog: 'unix:/dev/log'}", ""},
		{"{webhook: https://h/x}, {webhook: https://h/y}", ""},
		{"{}", "audit.anchors.0: want one of file, syslog and webhook, and found 0"},
		{"{file: /a/b, webhook: https://h/}", "audit.anchors.0: want one of file, syslog and webhook, and found 2"},
		{"{file: state/anchors}", "audit.anchors.0.file: /etc/p/state/anchors is below state_dir"},
		{"{file: /a/b}, {file: /a/../a/b}", "audit.anchors.1: file:/a/b is named twice"},
		{"{file: /a/b, size: 61}", "audit.anchors.0.size: 61: want 1 to 60 MiB"},
		{"{syslog: 'tcp://h:601', size: 2}", "audit.anchors.0.size: 2: want 1 to 60 MiB, of a file"},
		{"{syslog: 'udp://h:514'}", `audit.anchors.0.syslog: "udp://h:514": over UDP it does not show that a message was lost`},
		{"{syslog: 'tcp://h:601', ca: ca.pem}", "audit.anchors.0: ca, cert and key are of connections by TLS"},
		{"{syslog: 'tls://h:6514', secret: x}", "audit.anchors.0: read and secret are of a webhook"},
		{"{webhook: http://h/}", "audit.anchors.0.webhook: want https://"},
		{"{webhook: https://h/, cert: a.pem}", "audit.anchors.0.cert: \"a.pem\" with key \"\""},
		{"{webhook: https://h/, secret: 'credential:a/b'}", "audit.anchors.0.secret: "},
		{strings.Repeat("{webhook: https://h/},", 9), "audit.anchors: 9 of them: want at most 8"},
	} {
		_, err := Parse("/etc/p/c.yaml", []byte("state_dir: state\naudit:\n  anchors: ["+tt.in+"]\n"))
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.in, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "/etc/p/c.yaml:3: "+tt.want) {
			t.Errorf("%s: %v, want line 3 and %q", tt.in, err, tt.want)
		}
	}
	if _, err := Parse("c.yaml", []byte("audit: {every: 1ms, tell_after: 1s, service: 'a b'}\n")); err == nil || strings.Count(err.Error(), "c.yaml:1: audit.") != 3 {
		t.Errorf("%v, want 3 problems", err)
	}
}

// The files that anchors name are looked at by --check, too.
func TestAnchorFilesAreChecked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "short.secret"), "0123\n")
	write(t, filepath.Join(dir, "good.secret"), "0123456789abcdef\n")
	write(t, filepath.Join(dir, "other"), "")
	if err := os.Symlink(filepath.Join(dir, "other"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"{file: anchors}": "",
		"{webhook: https://h/, secret: good.secret}": "",
		"{file: link}":         "audit.anchors.0.file: ",
		"{file: none/anchors}": "audit.anchors.0.file: the directory of the file must be there",
		"{webhook: https://h/, secret: short.secret}":     "audit.anchors.0.secret: short.secret is shorter than 16 bytes",
		"{webhook: https://h/, secret: none.secret}":      "audit.anchors.0.secret: ",
		"{webhook: https://h/, ca: good.secret}":          "audit.anchors.0.ca: ",
		"{syslog: 'tls://h:6514', cert: none, key: none}": "audit.anchors.0.",
	} {
		c, err := Parse(filepath.Join(dir, "c.yaml"), []byte("roles: [sm]\naudit:\n  anchors: ["+in+"]\n"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := ReadFiles(c)
		if want == "" {
			if err != nil || len(p.Anchors) != 1 {
				t.Errorf("%s: %v", in, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "0123") {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
}
