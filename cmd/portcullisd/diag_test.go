package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// diagSite is a service on a fabric whose devices answer nothing without their M_Keys.
type diagSite struct {
	t       *testing.T
	fabric  *keyFabric
	client  *client.Client
	dir     string
	address string
}

func newDiagSite(t *testing.T) *diagSite {
	t.Helper()
	ibsimtest.Need(t, "smpquery", "ibnetdiscover", "iblinkinfo", "ibportstate", "perfquery")
	s := &diagSite{t: t, fabric: servedKeyFabric(t, sim.Modern())}
	s.dir, s.address = install(t, "--fabric-port", "ibsim:"+s.fabric.client.Socket+"/sm")
	start(t, s.dir)
	s.client = operator(t, s.dir, s.address)
	eventually(t, "a settled fabric whose devices have keys", func() (bool, string) {
		m, err := s.client.SM().Get(t.Context())
		if err != nil {
			return false, err.Error()
		}
		for _, p := range s.fabric.endPorts() {
			if p.key == 0 || p.level != 2 {
				return false, p.at + " has no key yet"
			}
		}
		return m.Settled, "not settled"
	})
	return s
}

// run runs a tool by "portcullis diag run".
func (s *diagSite) run(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), operatorProgram(s.t), append([]string{
		"--service", "https://" + s.address, "--ca", filepath.Join(s.dir, "tls/ca.pem"), "--token-file", filepath.Join(s.dir, "operator.token"), "diag", "run", "--reason", "a test", "--",
	}, args...)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &errs, s.t.TempDir()
	err := cmd.Run()
	if exited, ok := errors.AsType[*exec.ExitError](err); ok {
		return out.String(), errs.String(), exited.ExitCode()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return out.String(), errs.String(), 0
}

// TestDiagnosis: unchanged tools read a fabric whose keys they do not have, see none, and change nothing.
func TestDiagnosis(t *testing.T) {
	t.Parallel()
	s := newDiagSite(t)
	if _, err := s.fabric.client.Diag(t.Context(), "sm", "smpquery", "-D", "nodeinfo", "0,1"); err == nil {
		t.Fatal("a device answers without its key, so this test would show nothing")
	}
	host, before := s.fabric.PortInfo("h2", 1), s.violations() // those of the tool that has no key
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"smpquery", "-D", "nodeinfo", "0,1"}, []string{"NodeType:........................Switch"}},
		{[]string{"smpquery", "-K", "portinfo", host.LID.String(), "1"}, []string{"LinkState:.......................Active", "Mkey:............................0x0000000000000000", "ProtectBits:.....................2"}},
		{[]string{"smpquery", "nodedesc", host.LID.String()}, []string{"h2"}},
		{[]string{"smpquery", "pkeys", host.LID.String()}, []string{"0x7fff"}},
		{[]string{"perfquery", host.LID.String(), "1"}, []string{"PortXmitData:", "PortRcvPkts:"}},
		{[]string{"ibnetdiscover"}, []string{`"h1"`, `"h2"`, `"h3"`}},
		{[]string{"iblinkinfo"}, []string{"Active/  LinkUp", "h3"}},
	} {
		out, errs, code := s.run(tt.args...)
		for _, want := range tt.want {
			if code != 0 || !strings.Contains(out, want) {
				t.Errorf("%v: exit status %d, without %q:\n%s%s", tt.args, code, want, out, errs)
			}
		}
		for _, p := range s.fabric.endPorts() {
			if strings.Contains(strings.ToLower(out), hexOf(p.key)) {
				t.Errorf("%v shows the M_Key of %s:\n%s", tt.args, p.at, out)
			}
		}
	}
	leaf := s.fabric.PortInfo("leaf1", 0)
	for want, args := range map[string][]string{
		"Set of PortInfo: a tool may only read (Get)": {"ibportstate", leaf.LID.String(), "1", "disable"},
		"Set of PortCounters":                         {"perfquery", "-R", host.LID.String(), "1"},
		"no device with LID 999 is known":             {"smpquery", "nodeinfo", "999"},
	} {
		out, errs, code := s.run(args...)
		if code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: exit status %d, without %q:\n%s%s", args, code, want, out, errs)
		}
	}
	if got := s.fabric.PortInfo("leaf1", 1).PortState; got != ib.PortActive {
		t.Errorf("a port that a tool tried to disable is %v", got)
	}
	if after := s.violations(); after != before {
		t.Errorf("devices counted %d violations of their M_Keys, before: %d", after, before)
	}
	s.recorded()
}

// violations returns how many wrong M_Keys devices counted.
func (s *diagSite) violations() (n int) {
	for _, p := range s.fabric.endPorts() {
		node, port, _ := strings.Cut(p.at, "/")
		num, err := ib.ParsePortNum(port)
		if err != nil {
			s.t.Fatal(err)
		}
		n += int(s.fabric.PortInfo(node, num).MKeyViolations)
	}
	return n
}

// recorded wants the audit log to say what tools did.
func (s *diagSite) recorded() {
	s.t.Helper()
	var begun, ended []string
	for page, err := range s.client.Audit().Entries(s.t.Context(), v1.AuditQuery{}) {
		if err != nil {
			s.t.Fatal(err)
		}
		for i := range page.Items {
			switch e := &page.Items[i]; e.Action {
			case "fabric.inquiry.begin":
				begun = append(begun, e.Detail)
			case "fabric.inquiry.end":
				ended = append(ended, e.Detail)
			}
		}
	}
	all := strings.Join(begun, "\n") + "\n" + strings.Join(ended, "\n")
	for _, want := range []string{"smpquery -D nodeinfo 0,1, until ", ": a test", "iblinkinfo: ", "NodeInfo 1", "; 3 refused"} {
		if !strings.Contains(all, want) {
			s.t.Errorf("the audit log lacks %q:\n%s", want, all)
		}
	}
	if len(begun) == 0 || len(begun) != len(ended) {
		s.t.Errorf("%d inquiries began and %d ended", len(begun), len(ended))
	}
}

// TestDiagnosisOfOthers: another credential cannot use an inquiry, a viewer cannot begin one, and one that ended is gone.
func TestDiagnosisOfOthers(t *testing.T) {
	t.Parallel()
	s := newDiagSite(t)
	in, err := s.client.BeginInquiry(t.Context(), v1.NewInquiry{Reason: "a test", Tool: "mine", Seconds: 60})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(c *client.Client, id string) error {
		_, err := c.AskInquiry(t.Context(), id, v1.InquiryMADs{MADs: []v1.InquiryMAD{{MAD: make([]byte, 256)}}})
		return err
	}
	if err := ask(s.client, in.ID); err != nil {
		t.Errorf("a request that is refused alone: %v", err)
	}
	if err := ask(s.client, strings.Repeat("0", 32)); !isProblem(err, "inquiry_unknown") {
		t.Errorf("an inquiry that does not exist: %v", err)
	}
	if err := s.client.EndInquiry(t.Context(), in.ID); err != nil {
		t.Error(err)
	}
	for _, err := range []error{ask(s.client, in.ID), s.client.EndInquiry(t.Context(), in.ID)} {
		if !isProblem(err, "inquiry_unknown") {
			t.Errorf("an inquiry that ended: %v", err)
		}
	}
	for i := range 5 {
		_, err := s.client.BeginInquiry(t.Context(), v1.NewInquiry{Reason: "a test", Tool: "many", Seconds: 60})
		if i < 4 && err != nil || i == 4 && !isProblem(err, "inquiries_many") {
			t.Errorf("inquiry %d: %v", i, err)
		}
	}
}

func isProblem(err error, code string) bool {
	p, ok := errors.AsType[*v1.Problem](err)
	return ok && p.Code == code
}

func hexOf(key uint64) string { return strings.TrimPrefix(ib.GUID(key).String(), "0x") }
