package exits

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/events"
	"portcullis/api/syslog"
	v1 "portcullis/api/v1"
	"portcullis/packaging/testenv"
)

// certificate makes a certificate for 127.0.0.1 in files NAME.pem and NAME.key, by an authority or by itself.
func certificate(t *testing.T, dir, name string, by *tls.Certificate) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: by == nil, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	parent, signer := is, any(key)
	if by == nil {
		is.KeyUsage |= x509.KeyUsageCertSign
	} else {
		parent, signer = by.Leaf, by.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, is, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for ext, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name+ext), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// line is what rsyslog read of a message.
type line struct {
	Pri, App, Proc, ID, Data, Msg string
}

// startRsyslog runs Debian's rsyslog, which takes messages over TLS from clients with a certificate, over TCP and at a socket. It returns
// what it wrote.
func startRsyslog(t *testing.T, dir, secure, plain, socket string) func() []line {
	t.Helper()
	out := filepath.Join(dir, "log")
	property := func(name, as string) string {
		return fmt.Sprintf("property(name=%q outname=%q format=\"jsonf\")", name, as)
	}
	parts := strings.Join([]string{
		property("pri", "pri"), property("app-name", "app"), property("procid", "proc"), property("msgid", "id"), property("structured-data", "data"), property("msg", "msg"),
	}, ` constant(value=",") `)
	config := fmt.Sprintf(`global(defaultNetstreamDriverCAFile="%[1]s/ca.pem" defaultNetstreamDriverCertFile="%[1]s/server.pem" defaultNetstreamDriverKeyFile="%[1]s/server.key")
module(load="imtcp" streamdriver.name="gtls" streamdriver.mode="1" streamdriver.authmode="x509/certvalid")
input(type="imtcp" address="127.0.0.1" port="%[2]s")
module(load="imptcp")
input(type="imptcp" address="127.0.0.1" port="%[3]s")
module(load="imuxsock" SysSock.Use="off")
input(type="imuxsock" Socket="%[4]s")
template(name="json" type="list") { constant(value="{") %[5]s constant(value="}\n") }
*.* action(type="omfile" file="%[6]s" template="json")
`, dir, secure, plain, socket, parts, out)
	testenv.Rsyslog(t, dir, config, out)
	return func() []line {
		text, _ := os.ReadFile(out)
		var list []line
		for one := range strings.Lines(string(text)) {
			var l line
			if json.Unmarshal([]byte(one), &l) == nil {
				list = append(list, l)
			}
		}
		return list
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestRsyslog has rsyslog take events over TLS, over TCP and at a socket, one of them with what a hostile host could say.
func TestRsyslog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ca := certificate(t, dir, "ca", nil)
	certificate(t, dir, "server", ca)
	client := certificate(t, dir, "client", ca)
	roots := x509.NewCertPool()
	roots.AddCert(ca.Leaf)
	secure, plain, socket := freePort(t), freePort(t), filepath.Join(dir, "dev-log")
	lines := startRsyslog(t, dir, secure, plain, socket)

	e := of(events.LockChanged, "epoch", "h1", 0)
	e.Adapter, e.Seen = 0xb83fd20300123400, "Zürich \"]\n<13>1 - - evil - - - x\x00\\"
	const data = `[portcullis@32473 id="5f0c2a7be1d94c36-1042-9a3c5d0b77e1f204" event="lock.changed" severity="critical" cause="epoch" by="service" count="1" about="lock/0xb83fd20300123400" host="h1" guid="0xb83fd20300123400"]`
	text := `lock.changed (epoch) of host h1, adapter 0xb83fd20300123400, says service: expected e, seen Zürich "] <13>1 - - evil - - - x \`
	for n, where := range []string{"tls://127.0.0.1:" + secure, "tcp://127.0.0.1:" + plain, "unix:" + socket} {
		to, err := syslog.Parse(where)
		if err != nil {
			t.Fatal(err)
		}
		to.SetTLS(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{*client}})
		s := &Syslog{To: to, Facility: syslog.Audit, Enterprise: ExampleEnterprise}
		until(t, where, func() bool { return s.Send(t.Context(), "x", noon, body(t, e)) == nil })
		until(t, "a message by "+where, func() bool { return len(lines()) == n+1 })
		got := lines()[n]
		want := line{Pri: "106", App: "portcullisd", Proc: fmt.Sprint(os.Getpid()), ID: "lock.changed", Data: data, Msg: "\ufeff" + text}
		if strings.HasPrefix(where, "unix:") {
			want.ID, want.Data, want.Msg = "-", "-", " "+data+" "+text
		}
		if got != want {
			t.Errorf("%s:\ngot  %+q\nwant %+q", where, got, want)
		}
	}
	// A client without a certificate, and one to which the server shows one of a foreign authority, send nothing.
	for _, conf := range []*tls.Config{{RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{*client}}, {RootCAs: roots}} {
		to, err := syslog.Parse("tls://127.0.0.1:" + secure)
		if err != nil {
			t.Fatal(err)
		}
		to.SetTLS(conf)
		if err := (&Syslog{To: to}).Send(t.Context(), "x", noon, body(t, e)); err == nil {
			t.Errorf("%d certificates: no error", len(conf.Certificates))
		}
	}
	if got := lines(); len(got) != 3 {
		t.Errorf("%d messages", len(got))
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	for severity, want := range map[string]syslog.Severity{events.Critical: 2, events.Warning: 4, events.Notice: 5, events.Info: 6, "other": 6} {
		if m := message(&v1.CloudEvent{Data: v1.Event{Severity: severity}}); m.Severity != want {
			t.Errorf("%s: %d", severity, m.Severity)
		}
	}
	if err := (&Syslog{}).Send(t.Context(), "x", noon, []byte("{")); err == nil || !strings.Contains(err.Error(), "not readable") {
		t.Errorf("%v", err)
	}
}
