package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"portcullis/agent"
	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest/reference"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// machine is a host with a real software TPM and the kernel's trees.
type machine struct {
	id       string
	nodeGUID ib.GUID // its port GUID is one more
	place    string  // where it is cabled
	route    string  // directed route from the service's port to it
	onLeaf   string  // its port of the leaf switch
	tpm      *tpmtest.TPM
	config   agent.Config
}

// TestAdmission is the whole path on real parts: a host attests with a TPM,
// the service admits it, and third-party tools see its P_Key on switch port
// and HCA; a power cut changes nothing; a release takes it away; a host that
// claims another's GUIDs is refused.
func TestAdmission(t *testing.T) {
	t.Parallel()
	vendor := tpmtest.ShortDir(t)
	tpmtest.Require(t)
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	h1 := newMachine(t, vendor, &machine{id: "h1", nodeGUID: 0x200000, place: "0x100000/1", route: "0,1,1", onLeaf: "1"})
	h2 := newMachine(t, vendor, &machine{id: "h2", nodeGUID: 0x300000, place: "0x100000/2", route: "0,1,2", onLeaf: "2"})
	dir, address := install(t, "--fabric-port", "ibsim:"+lab.Socket()+"/sm")
	configure(t, dir, h1)
	d := start(t, dir)
	c, ctx := operator(t, dir, address), t.Context()

	h1.serve(dir, address)
	h2.serve(dir, address)
	trustBoots(t, c, c, h1)
	if _, err := c.Inventory().Import(ctx, []v1.InventoryFile{{Name: "rack.yaml", Content: "hosts:\n" + h1.inventory() + h2.inventory()}}, v1.RepairTicket{}, false); err != nil {
		t.Fatal(err)
	}
	for host, tenant := range map[string]string{"h1": "acme", "h2": "blue"} {
		if _, err := c.Tenants().Create(ctx, v1.NewTenant{Name: tenant}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Clusters().Create(ctx, v1.NewCluster{Name: tenant + "-1", Tenant: tenant}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Hosts().Assign(ctx, host, v1.Assignment{Cluster: tenant + "-1"}); err != nil {
			t.Fatal(err)
		}
	}
	wantPKeys(t, lab, h1, "")
	h1.provision(t)
	key := phase(t, c, "h1", v1.PhaseAdmitted).Status.PKey
	wantPKeys(t, lab, h1, key.Full().String())
	wantPKeys(t, lab, h2, "")
	h1.wantCertificate(t, c)

	// A power cut: the same host is admitted and nothing is programmed again.
	d.kill()
	d = start(t, dir)
	eventually(t, "a settled fabric after the power cut", func() (bool, string) {
		s, err := c.SM().Get(ctx)
		return err == nil && s.Settled && strings.Contains(d.lines.String(), "settled with revision"), fmt.Sprint(s, err)
	})
	if h := phase(t, c, "h1", v1.PhaseAdmitted); h.Status.PKey != key {
		t.Errorf("after a power cut P_Key %v, want %v", h.Status.PKey, key)
	}
	if !regexp.MustCompile(`settled with revision \d+ after \d+ requests, 0 of them Sets`).MatchString(d.lines.String()) {
		t.Errorf("something was programmed again after the power cut:\n%s", d.lines)
	}
	wantPKeys(t, lab, h1, key.Full().String())
	h1.wantStatus(t, v1.PhaseAdmitted)

	impostor(t, c, h1, h2)
	if _, err := c.Hosts().Release(client.IfMatch(ctx, client.AnyVersion), "h1"); err != nil {
		t.Fatal(err)
	}
	phase(t, c, "h1", v1.PhaseQuarantined)
	wantPKeys(t, lab, h1, "")
	h1.wantStatus(t, "")
	d.awaitStatus("STATUS=serving")
}

// wantStatus has the host ask for its own status with the key in its TPM. "" is none:
// its certificate is not taken any more.
func (m *machine) wantStatus(t *testing.T, want v1.Phase) {
	t.Helper()
	h, err := agent.Status(t.Context(), &m.config, "test")
	if want == "" {
		if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Code != v1.CodeUnauthenticated {
			t.Errorf("status of %s with its certificate: %+v, %v; want it refused", m.id, h, err)
		}
	} else if err != nil || h == nil || h.Status.Phase != want {
		t.Errorf("status of %s with its certificate: %+v, %v; want %s", m.id, h, err, want)
	}
}

// wantCertificate holds the certificate of a host against what openssl reads in it, and
// against the authorities that operators are shown.
func (m *machine) wantCertificate(t *testing.T, c *client.Client) {
	t.Helper()
	m.wantStatus(t, v1.PhaseAdmitted)
	all, err := c.Authorities().Get(t.Context())
	if err != nil || len(all.Items) != 1 {
		t.Fatalf("authorities %+v, %v", all, err)
	}
	data, err := os.ReadFile(filepath.Join(m.config.StateDir, "hostkey.json"))
	if err != nil {
		t.Fatal(err)
	}
	var kept struct {
		Certificate []byte `json:"certificate"`
	}
	if err := json.Unmarshal(data, &kept); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	leaf, root := filepath.Join(dir, "host.der"), filepath.Join(dir, "authority.pem")
	if err := errors.Join(os.WriteFile(leaf, kept.Certificate, 0o600), os.WriteFile(root, []byte(all.Items[0].Certificate), 0o600)); err != nil {
		t.Fatal(err)
	}
	openssl := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "openssl", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("openssl %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	openssl("verify", "-x509_strict", "-purpose", "sslclient", "-CAfile", root, leaf)
	text := openssl("x509", "-inform", "DER", "-in", leaf, "-noout", "-ext", "subjectAltName,extendedKeyUsage,keyUsage")
	for _, want := range []string{"URI:spiffe://portcullis.internal/host/" + m.id + "\n", "TLS Web Client Authentication\n", "Digital Signature\n"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("openssl reads of the certificate of %s\n%s, want %q", m.id, text, want)
		}
	}
}

// impostor lets host h attest with its own TPM for the GUIDs of other.
func impostor(t *testing.T, c *client.Client, other, h *machine) {
	t.Helper()
	liar := *h
	liar.nodeGUID = other.nodeGUID
	liar.plant(t)
	err := liar.run(t)
	if agent.ClassOf(err) != agent.ClassRefused || strings.Contains(err.Error(), "guid") {
		t.Fatalf("impostor: %v, want a refusal that does not say why", err)
	}
	got, err := c.Hosts().Get(t.Context(), h.id)
	if err != nil || got.Status.LastDenial == nil || got.Status.LastDenial.Code != "guid-conflict" {
		t.Errorf("host %+v, %v; want the reason guid-conflict for the operator", got, err)
	}
}

func newMachine(t testing.TB, vendor string, m *machine) *machine {
	t.Helper()
	m.tpm = tpmtest.New(t, tpmtest.Options{CA: vendor, Name: m.id})
	dir := t.TempDir()
	m.config = agent.DefaultConfig()
	m.config.Host, m.config.TPM, m.config.Timeout = m.id, m.tpm.Device(), patience
	m.config.Sysfs, m.config.Procfs = filepath.Join(dir, "sys"), filepath.Join(dir, "proc")
	m.config.StateDir = filepath.Join(dir, "state")
	m.plant(t)
	return m
}

// serve names the service.
func (m *machine) serve(dir, address string) {
	m.config.Service, m.config.CA = "https://"+address, filepath.Join(dir, "tls", "ca.pem")
}

// plant writes the kernel's trees.
func (m *machine) plant(t testing.TB) {
	t.Helper()
	sysfs := func(g ib.GUID) string {
		return fmt.Sprintf("%04x:%04x:%04x:%04x", uint16(g>>48), uint16(g>>32), uint16(g>>16), uint16(g))
	}
	const hca = "sys/class/infiniband/mlx5_0/"
	for name, data := range map[string]string{
		"proc/sys/kernel/random/boot_id": "3a6e2f4b-7c1d-4f6e-9a3b-0d5c8e7f1a2b",
		hca + "node_guid":                sysfs(m.nodeGUID),
		hca + "sys_image_guid":           sysfs(m.nodeGUID),
		hca + "board_id":                 "MT_0000000838",
		hca + "fw_ver":                   "28.43.1014",
		hca + "hca_type":                 "MT4129",
		hca + "ports/1/link_layer":       "InfiniBand",
		hca + "ports/1/gids/0":           "fe80:0000:0000:0000:" + sysfs(m.nodeGUID+1),
	} {
		path := filepath.Join(filepath.Dir(m.config.Sysfs), name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(data+"\n"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.tpm.PlantEventLog(m.config.Sysfs); err != nil {
		t.Fatal(err)
	}
}

// trustBoots has the boot of a machine learned by one operator and approved by
// another.
func trustBoots(t testing.TB, learns, approves *client.Client, m *machine) {
	t.Helper()
	set, err := learns.References().Learn(t.Context(), v1.NewReference{Class: reference.DefaultClass, Logs: [][]byte{m.tpm.EventLog()}, Reason: "as delivered"})
	if err == nil {
		_, err = approves.References().Approve(t.Context(), set.Class, set.Version, v1.ReferenceApprove{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (m *machine) inventory() string {
	return fmt.Sprintf(`- id: %s
  ek_sha256: "%s"
  hcas:
  - node_guid: %v
    ports:
    - {port: 1, guid: %v, cable: %s}
`, m.id, m.tpm.EKDigest(), m.nodeGUID, m.nodeGUID+1, m.place)
}

func (m *machine) run(t testing.TB) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return agent.Provision(ctx, agent.Options{Config: m.config, Version: "test", Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
}

func (m *machine) provision(t *testing.T) {
	t.Helper()
	if err := m.run(t); err != nil {
		t.Fatalf("provision %s: %v", m.id, err)
	}
}

// configure trusts the TPM vendor and takes the simulator's word for
// enforcement, whose bits ibsim forgets.
func configure(t *testing.T, dir string, m *machine) {
	t.Helper()
	trustVendor(t, dir, m, "enforcement: verified", "enforcement: accepted",
		"m_key_enable: auto", "m_key_enable: ignore") // of what ibsim keeps
}

// phase waits until a host is in a phase.
func phase(t testing.TB, c *client.Client, id string, want v1.Phase) *v1.Host {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var last *v1.Host
	for h, err := range c.Hosts().Watch(ctx, id) {
		if err != nil {
			t.Fatalf("host %s does not become %s: %v; last seen %+v", id, want, err, last)
		}
		if last = h; h.Status.Phase == want {
			break
		}
	}
	return last
}

// wantPKeys asks smpquery for the P_Keys of a host's HCA and of its port of the
// leaf switch. key is the only tenant P_Key there may be.
func wantPKeys(t *testing.T, lab *ibsimlab.Lab, m *machine, key string) {
	t.Helper()
	for where, args := range map[string][]string{
		"HCA": {"-D", "pkeys", m.route, "1"}, "switch port": {"-D", "pkeys", "0,1", m.onLeaf},
	} {
		out := ibsimtest.Diag(t, lab, "sm", "smpquery", args...)
		var tenant []string
		for _, k := range regexp.MustCompile(`0x[0-9a-f]{4}\b`).FindAllString(out, -1) {
			if k != "0x0000" && k != "0x7fff" && k != "0xffff" {
				tenant = append(tenant, k)
			}
		}
		if got := strings.Join(tenant, " "); got != key {
			t.Errorf("%s of %s holds tenant P_Keys %q, want %q:\n%s", where, m.id, got, key, out)
		}
	}
}
