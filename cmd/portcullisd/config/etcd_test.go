package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/ca"
)

// TestEtcdSection holds that values and files of the section are judged before a
// connection is tried, and that no refusal shows the password.
func TestEtcdSection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	now := time.Now()
	root, err := ca.New("etcd CA", now)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := root.PEM()
	if err != nil {
		t.Fatal(err)
	}
	good, err := root.IssueClient("machine", now)
	if err != nil {
		t.Fatal(err)
	}
	old, err := root.IssueClient("machine", now.AddDate(-3, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"ca.pem": string(authority.Cert), "good.pem": string(good.Cert), "good.key": string(good.Key),
		"old.pem": string(old.Cert), "old.key": string(old.Key), "password": "s3cret\n", "two-lines": "s3cret\ns3cret\n", "empty": "\n", "text": "no certificate\n",
	} {
		write(t, filepath.Join(dir, name), data)
	}
	for _, name := range []string{"good.key", "old.key", "password", "two-lines", "empty"} {
		if err := os.Chmod(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "open.key"), string(good.Key))
	if err := os.Chmod(filepath.Join(dir, "open.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	const at = "endpoints: [https://etcd1.example:2379]"
	for _, tt := range []struct{ section, want string }{
		{at, ""},
		{at + ", ca: ca.pem, cert: good.pem, key: good.key, user: portcullis, password: password", ""},
		{"endpoints: [http://127.0.0.1:2379], prefix: site/fabric-1", ""},
		{"endpoints: [http://etcd1.example:2379]", "loopback"},
		{"endpoints: [etcd1.example]", "etcd.endpoints"},
		{at + ", prefix: /", "etcd.prefix"},
		{at + ", cert: good.pem", "etcd.cert"},
		{at + ", user: portcullis", "etcd.user"},
		{"user: portcullis, password: password", "etcd.endpoints"},
		{at + ", request_timeout: 0s", "etcd.request_timeout"},
		{at + ", user: portcullis, password: \"credential:a/b\"", "etcd.password"},
		{at + ", ca: none.pem", "etcd.ca"},
		{at + ", ca: text", "holds no certificate"},
		{at + ", cert: old.pem, key: old.key", "is valid from"},
		{at + ", cert: good.pem, key: old.key", "etcd.cert"},
		{at + ", cert: good.pem, key: open.key", "chmod"},
		{at + ", user: portcullis, password: two-lines", "one line"},
		{at + ", user: portcullis, password: empty", "one line"},
		{at + ", user: portcullis, password: none", "etcd.password"},
	} {
		c, err := Parse(filepath.Join(dir, "portcullisd.yaml"), []byte("etcd: {"+tt.section+"}\n"))
		if err == nil {
			_, err = loadEtcd(c, now)
		}
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("{%s}: %v", tt.section, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("{%s}: %v, want a refusal that says %q", tt.section, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("{%s}: %v shows the password", tt.section, err)
		}
	}
}
