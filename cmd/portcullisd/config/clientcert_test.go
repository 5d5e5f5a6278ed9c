package config

import (
	"encoding/pem"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/ca"
	"portcullis/api/clientcert"
)

const clientsOfTests = `{name: spire, ca_file: ca.pem, trust_domain: example.org, rules: [{spiffe: "spiffe://example.org/ns/prov/", role: scheduler}, {dns: slurm.example.org, role: viewer}]}`

// TestClientCertificates: each mistake is reported with its key and line.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	swap := func(old, with string) string { return strings.Replace(clientsOfTests, old, with, 1) }
	for _, tt := range []struct{ in, want string }{
		{clientsOfTests, ""},
		{"{}", "client_certificates.0.name: "},
		{"{name: spire, ca_file: ca.pem}", "client_certificates.0.rules: is empty"},
		{swap("spire", "'Spire:'"), "client_certificates.0.name: "},
		{swap("ca_file: ca.pem, ", ""), "client_certificates.0.ca_file: is empty"},
		{swap("scheduler", "king"), `client_certificates.0.rules.0.role: "king": want viewer, `},
		{swap(", role: scheduler", ""), "client_certificates.0.rules.0.role: is missing: want viewer, "},
		{swap("scheduler", "tenant, tenants: [acme]"), ""},
		{swap("scheduler", "tenant"), "client_certificates.0.rules.0.tenants: is missing: the role tenant needs"},
		{swap("scheduler", "tenant, tenants: ['*']"), `client_certificates.0.rules.0.tenants: "*" is no name`},
		{swap("scheduler", "scheduler, tenants: [acme]"), "client_certificates.0.rules.0.tenants: is for the role tenant alone"},
		{swap("scheduler", "tenant, tenants: [acme], p_keys: [0x1-0x2]"), "client_certificates.0.rules.0.p_keys: goes not with the role tenant"},
		{swap("scheduler", "scheduler, p_keys: [0x0100-0x01ff], hosts: ['gpu-*']"), ""},
		{swap("scheduler", "scheduler, p_keys: []"), "client_certificates.0.rules.0.p_keys: is empty"},
		{swap("scheduler", "scheduler, p_keys: "), "client_certificates.0.rules.0.p_keys: is empty"},
		{swap("scheduler", "scheduler, p_keys: [0x8001]"), "client_certificates.0.rules.0.p_keys: P_Key range"},
		{swap("scheduler", "scheduler, hosts: [gpu-1]"), "client_certificates.0.rules.0.hosts: "},
		{swap("dns: slurm.example.org", `dns: slurm.example.org, spiffe: "spiffe://example.org/x"`), "client_certificates.0.rules.1: has both spiffe and dns"},
		{swap("dns: slurm.example.org, ", ""), "client_certificates.0.rules.1: has neither spiffe nor dns"},
		{swap("slurm.example.org", "'*.example.org'"), "client_certificates.0.rules.1.dns: \"*.example.org\": a wildcard"},
		{swap("slurm.example.org", "Slurm.example.org"), "client_certificates.0.rules.1.dns: "},
		{swap("spiffe://example.org/ns/prov/", "spiffe://example.org/ns//prov"), "client_certificates.0.rules.0.spiffe: "},
		{swap("spiffe://example.org/ns/prov/", "https://example.org/ns"), "client_certificates.0.rules.0.spiffe: "},
		{swap("spiffe://example.org/ns/prov/", "spiffe://evil.example/ns/"), "client_certificates.0.rules.0.spiffe: \"spiffe://evil.example/ns/\" is not in the trust domain example.org"},
		{swap("spiffe://example.org/ns/prov/", "spiffe://example.org"), "client_certificates.0.rules.0.spiffe: \"spiffe://example.org\" names a trust domain"},
		{swap("spiffe://example.org/ns/prov/", "spiffe://example.org/"), ""},
		{swap("trust_domain: example.org, ", ""), "client_certificates.0.rules.0.spiffe: needs trust_domain"},
		{swap("trust_domain: example.org", "trust_domain: Example.org"), "client_certificates.0.trust_domain: "},
		{swap("{dns: slurm.example.org", `{spiffe: "spiffe://example.org/ns/prov/maas"`), "client_certificates.0.rules.1: is never reached"},
		{swap("{dns: slurm.example.org", `{spiffe: "spiffe://example.org/ns/prov/"`), "client_certificates.0.rules.1: is never reached"},
		{swap("ca_file", "ca_fyle"), "unknown key ca_fyle"},
		{swap("rules", "refuse: [{serial: 0a1b2c}, {serial: '0A:1B'}, {serial: 123456}, {dns: x.example.org}, {spiffe: 'spiffe://example.org/x'}], rules"), ""},
		{swap("rules", "refuse: [{}], rules"), "client_certificates.0.refuse.0: has neither"},
		{swap("rules", "refuse: [{serial: 0a, dns: x}], rules"), "client_certificates.0.refuse.0: want one of serial, spiffe and dns"},
		{swap("rules", "refuse: [{serial: xyz}], rules"), "client_certificates.0.refuse.0.serial: "},
		{swap("rules", "refuse: [{spiffe: spiffe}], rules"), "client_certificates.0.refuse.0.spiffe: "},
		{clientsOfTests + ", " + swap("example.org, rules", "other.example, rules"), "client_certificates.1.name: spire is named twice"},
		{clientsOfTests + ", " + swap("spire", "step"), "client_certificates.1.trust_domain: example.org is that of spire already"},
		{strings.Repeat(clientsOfTests+",", 9), "client_certificates: 9 of them"},
	} {
		_, err := Parse("c.yaml", []byte("client_certificates: ["+tt.in+"]\n"))
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "c.yaml:1: ")) {
			t.Errorf("%s: error %v, want %q", tt.in, err, tt.want)
		}
	}
	_, err := Parse("c.yaml", []byte("host_certificates: {ca_root: r, trust_domain: example.org}\nclient_certificates: ["+clientsOfTests+"]\n"))
	if err == nil || !strings.Contains(err.Error(), "c.yaml:2: client_certificates.0.trust_domain: example.org is that of the certificates of hosts") {
		t.Errorf("the trust domain of hosts: %v", err)
	}
}

// TestClientAuthorityFiles: the files are read by --check, too. One without certificates of authorities, with a key, or with an authority that signs
// for hosts or for members of the store is refused, with the line that names it.
func TestClientAuthorityFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root, other := authority(t), authority(t)
	hosts, err := ca.NewHosts("example.org", time.Now(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := ca.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := parsed.IssueClient("machine", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	hostRoot := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hosts.Certificate().Raw}))
	for name, data := range map[string]string{
		"ca.pem": "a note\n" + string(root.Cert), "two.pem": string(root.Cert) + string(other.Cert), "twice.pem": string(root.Cert) + string(root.Cert),
		"empty.pem": "\n", "key.pem": string(root.Cert) + string(root.Key), "hosts.pem": string(other.Cert) + hostRoot, "leaf.pem": string(leaf.Cert),
		"broken.pem": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "many.pem": strings.Repeat(string(root.Cert), 17), "cluster.pem": string(other.Cert),
	} {
		write(t, filepath.Join(dir, name), data)
	}
	for file, want := range map[string]string{
		"ca.pem": "", "empty.pem": "it holds no certificate in PEM form", "none.pem": "no such file", "key.pem": `it holds a block "PRIVATE KEY"`,
		"hosts.pem": "it signs certificates of hosts, on which tenants are root", "leaf.pem": "no certificate of an authority", "broken.pem": "certificate 1: ",
		"twice.pem": "is there twice", "many.pem": "is there twice", "two.pem": "it is", "cluster.pem": "is the authority of the members of the store (cluster.ca)",
	} {
		text := "cluster: {name: a, ca: cluster.pem}\nclient_certificates:\n- " + strings.Replace(clientsOfTests, "ca.pem", file, 1) + "\n"
		c := Default()
		c.File = filepath.Join(dir, "c.yaml")
		write(t, c.File, text)
		if _, err := decode(c.File, []byte(text), c); err != nil {
			t.Fatal(err)
		}
		got, err := LoadClientAuthorities(c)
		if file == "two.pem" { // has the authority of the members
			want = "is the authority of the members of the store"
		}
		switch {
		case want != "" && (err == nil || got != nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "c.yaml:3: client_certificates.0.ca_file: ")):
			t.Errorf("%s: %v, want %q", file, err, want)
		case want == "" && (err != nil || len(got) != 1 || len(got[0].Roots) != 1 || len(got[0].Rules) != 2):
			t.Errorf("%s: %+v, error %v", file, got, err)
		}
	}
}

// TestOneAuthorityTwice: an authority stands at one place.
func TestOneAuthorityTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	root := authority(t)
	write(t, filepath.Join(dir, "ca.pem"), string(root.Cert))
	text := "client_certificates:\n- " + clientsOfTests + "\n- {name: step, ca_file: ca.pem, rules: [{dns: x.example.org, role: viewer}]}\n"
	file := filepath.Join(dir, "c.yaml")
	write(t, file, text)
	c, err := Parse(file, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LoadClientAuthorities(c); err == nil || !strings.Contains(err.Error(), "c.yaml:3: client_certificates.1.ca_file: ") || !strings.Contains(err.Error(), "is an authority of spire already") {
		t.Errorf("%v", err)
	}
}

// TestClientWarnings: an authority that ends soon is named, and one that has ended.
func TestClientWarnings(t *testing.T) {
	t.Parallel()
	roots, err := clientcert.ReadRoots(authority(t).Cert)
	if err != nil {
		t.Fatal(err)
	}
	all := []clientcert.Authority{{Name: "spire", Roots: roots}}
	end := roots[0].NotAfter
	for at, want := range map[time.Time]string{
		end.Add(-31 * 24 * time.Hour): "", end.Add(-time.Hour): "the last certificate in the ca_file of spire ends at", end: "the last certificate in the ca_file of spire ended at",
	} {
		got := strings.Join(ClientWarnings(all, at), "\n")
		if !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
}

// TestTokenNamesOfMachines: no token has the name of a machine with a certificate.
func TestTokenNamesOfMachines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tokens.yaml"), "tokens:\n- {name: 'x509:spire:slurm', role: viewer, sha256: "+strings.Repeat("ab", 32)+"}\n")
	c := Default()
	c.File = filepath.Join(dir, "c.yaml")
	if _, err := LoadTokens(c); err == nil || !strings.Contains(err.Error(), `token "x509:spire:slurm": names that begin with x509:`) {
		t.Errorf("tokens: %v", err)
	}
}

// TestTokenNamesOfTheLog: no token has a name under which the audit log has what no operator did. Such an entry has no reason.
func TestTokenNamesOfTheLog(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"service": true, "agent:h1": true, "source:10.0.0.1": true, "services": false, "agent": false} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "tokens.yaml"), "tokens:\n- {name: '"+name+"', role: viewer, sha256: "+strings.Repeat("ab", 32)+"}\n")
		c := Default()
		c.File = filepath.Join(dir, "c.yaml")
		_, err := LoadTokens(c)
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), `token "`+name+`": the audit log has this name`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
