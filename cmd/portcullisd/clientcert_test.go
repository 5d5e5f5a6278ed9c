package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "portcullis/api/v1"
)

// pki makes certificates with openssl, as a site does.
type pki struct {
	t   *testing.T
	dir string
}

func (p *pki) openssl(args ...string) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "openssl", args...)
	cmd.Dir = p.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("openssl %v: %v\n%s", args, err, out)
	}
}

// authority makes NAME.pem and NAME.key.
func (p *pki) authority(name string) {
	p.t.Helper()
	p.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN="+name, "-days", "20",
		"-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign,cRLSign", "-keyout", name+".key", "-out", name+".pem")
}

// issue makes NAME.pem and NAME.key for a subject alternative name.
func (p *pki) issue(by, name, san string) {
	p.t.Helper()
	p.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/O=machines", "-keyout", name+".key", "-out", name+".csr")
	write(p.t, filepath.Join(p.dir, name+".ext"), "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\nextendedKeyUsage=clientAuth\nsubjectAltName="+san+"\n")
	p.openssl("x509", "-req", "-in", name+".csr", "-CA", by+".pem", "-CAkey", by+".key", "-days", "10", "-extfile", name+".ext", "-out", name+".pem")
}

// TestClientCertificates: curl with certificates that openssl made acts for machines; a reload revokes one of them, and another one later the authority.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	dir, address := install(t, "--fabric-port", nobody())
	p := &pki{t, t.TempDir()}
	p.authority("site")
	p.authority("foreign")
	p.issue("site", "maas", "URI:spiffe://example.org/ns/prov/maas,DNS:grafana.example.org")
	p.issue("site", "grafana", "DNS:grafana.example.org")
	p.issue("foreign", "impostor", "URI:spiffe://example.org/ns/prov/maas")
	section := func(more string) string {
		return "client_certificates:\n- name: site\n  ca_file: " + p.dir + "/site.pem\n  trust_domain: example.org\n" + more +
			"  rules:\n  - {spiffe: \"spiffe://example.org/ns/prov/\", role: scheduler}\n  - {dns: grafana.example.org, role: viewer}\n"
	}
	file := filepath.Join(dir, "portcullisd.yaml")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	configure := func(section string) {
		t.Helper()
		next := strings.Replace(strings.Replace(string(old), "client_certificates: []\n", section, 1), "roles: [api, sm]", "roles: [api]", 1)
		if !strings.Contains(next, "\n"+section) || !strings.Contains(next, "roles: [api]") {
			t.Fatal("the configuration of init has no client_certificates and roles")
		}
		write(t, file, next)
	}
	ask := func(cert, path string, more ...string) string {
		t.Helper()
		args := []string{"--silent", "--cacert", filepath.Join(dir, "tls", "ca.pem"), "--write-out", "\n%{http_code}"}
		if cert != "" {
			args = append(args, "--cert", filepath.Join(p.dir, cert+".pem"), "--key", filepath.Join(p.dir, cert+".key"))
		}
		out, err := exec.CommandContext(t.Context(), "curl", append(append(args, more...), "https://"+address+path)...).Output()
		if err != nil {
			t.Fatalf("curl %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	want := func(what, answer, code, text string) {
		t.Helper()
		if !strings.HasSuffix(answer, "\n"+code) || !strings.Contains(answer, text) {
			t.Errorf("%s: %s, want %s and %q", what, answer, code, text)
		}
	}

	configure(section(""))
	out, err := exec.CommandContext(t.Context(), "portcullisd", "--config", file, "--check").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "warning: client_certificates: the last certificate in the ca_file of site ends at") {
		t.Errorf("--check: %v\n%s", err, out)
	}
	d := start(t, dir)
	reload := func() {
		t.Helper()
		hangUp(t, d)
		d.await("RELOADING=1")
		d.await("READY=1")
	}
	want("whoami", ask("maas", "/v1/whoami"), "200", `"name":"x509:site:spiffe://example.org/ns/prov/maas"`)
	want("a DNS name", ask("grafana", "/v1/whoami"), "200", `"name":"x509:site:grafana.example.org"`)
	want("a scheduler", ask("maas", "/v1/tenants", "--json", `{"name":"acme"}`), "201", "acme")
	want("a viewer", ask("grafana", "/v1/tenants", "--json", `{"name":"zeta"}`), "403", "client certificate x509:site:grafana.example.org has the role viewer")
	out, err = exec.CommandContext(t.Context(), operatorProgram(t), "--service", "https://"+address, "--ca", filepath.Join(dir, "tls", "ca.pem"),
		"--client-cert", filepath.Join(p.dir, "maas.pem"), "--client-key", filepath.Join(p.dir, "maas.key"), "whoami").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "x509:site:spiffe://example.org/ns/prov/maas\n") || !strings.Contains(string(out), "client certificate of the authority site") {
		t.Errorf("portcullis whoami: %v\n%s", err, out)
	}
	want("another authority", ask("impostor", "/v1/whoami"), "401", "no authority of site vouches for it")
	want("a token beside it", ask("maas", "/v1/whoami", "--header", "Authorization: Bearer x"), "400", "two_credentials")
	want("no certificate", ask("", "/v1/whoami"), "401", "no operator token")
	want("no credential needed", ask("impostor", "/livez"), "200", "live")
	c, ctx := operator(t, dir, address), t.Context()
	named := false
	for page, err := range c.Audit().Entries(ctx, v1.AuditQuery{Actor: "x509:site:spiffe://example.org/ns/prov/maas"}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Items {
			named = named || e.Action == "tenant.create"
		}
	}
	if !named {
		t.Error("the audit log does not name the machine")
	}
	if text := fetch(t, dir, address, "/metrics"); !strings.Contains(text, `portcullis_client_ca_end_timestamp_seconds{authority="site"} 1.`) {
		t.Error("metrics lack the end of the authority")
	}

	configure(section("  refuse: [{spiffe: \"spiffe://example.org/ns/prov/maas\"}]\n"))
	reload()
	want("revoked", ask("maas", "/v1/whoami"), "401", "the list refuse of the authority site has it")
	want("not revoked", ask("grafana", "/v1/whoami"), "200", "x509:site:grafana.example.org")
	configure(strings.Replace(section(""), "role: viewer", "role: king", 1))
	reload()
	want("after a mistake", ask("grafana", "/v1/whoami"), "200", "x509:site:grafana.example.org")
	if log := d.lines.String(); !strings.Contains(log, "client_certificates.0.rules.1.role") {
		t.Errorf("the log does not name the mistake:\n%s", log)
	}
	configure("client_certificates: []\n")
	reload()
	want("without authorities", ask("grafana", "/v1/whoami"), "401", "the client certificate is not one of a host")
}
