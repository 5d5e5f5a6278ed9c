package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/client"
	"portcullis/api/store"
	"portcullis/api/store/etcd"
	"portcullis/api/topology"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/config"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/discovered"
	"portcullis/fabricsm/topospec/native"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// sixHosts is a switch with the service's own HCA and six hosts.
func sixHosts() string {
	var b strings.Builder
	b.WriteString("switchguid=0x100000\nSwitch 8 \"leaf1\"\n")
	for i := 1; i <= 6; i++ {
		fmt.Fprintf(&b, "[%d] \"h%d\"[1]\n", i, i)
	}
	b.WriteString("[8] \"sm\"[1]\n\ncaguid=0x400000\nCa 1 \"sm\"\n[1] \"leaf1\"[8]\n")
	for i := 1; i <= 6; i++ {
		fmt.Fprintf(&b, "\ncaguid=0x2000%d0\nCa 1 \"h%d\"\n[1] \"leaf1\"[%d]\n", i, i, i)
	}
	return b.String()
}

// topospecSite is a service over a fabric, and two people who keep its topology.
type topospecSite struct {
	t            *testing.T
	dir, address string
	d            *process
	olga, bob    *client.Client
	rev          *topospec.Revision // the fabric as it is cabled
}

func newTopospecSite(t *testing.T, netlist, port string) *topospecSite {
	t.Helper()
	r, err := discovered.Parse("netlist", "lab", []byte(netlist))
	if err != nil {
		t.Fatal(err)
	}
	for i := range r.Devices {
		if r.Devices[i].Name == "sm" {
			r.Devices[i].Role = topospec.RoleSM
		}
	}
	s := &topospecSite{t: t, rev: r}
	s.dir, s.address = install(t, "--fabric-port", port)
	// The second person.
	cmd := exec.Command("portcullisd", "token", "--name", "bob", "--role", "operator")
	var token, entry strings.Builder
	cmd.Stdout, cmd.Stderr = &token, &entry
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.dir, "tokens.yaml")
	had, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, lines, _ := strings.Cut(entry.String(), "\n")
	if err := os.WriteFile(file, append(had, lines...), 0o600); err != nil {
		t.Fatal(err)
	}
	s.d = start(t, s.dir)
	s.olga, s.bob = operator(t, s.dir, s.address), withToken(t, s.dir, s.address, strings.TrimSpace(token.String()))
	s.settled()
	return s
}

func (s *topospecSite) settled() {
	s.t.Helper()
	eventually(s.t, "a settled fabric", func() (bool, string) {
		o, err := s.olga.Fabric().Overview(s.t.Context())
		return err == nil && o.Settled, fmt.Sprint(o, err, s.d.lines)
	})
}

// draft hands a revision in as olga.
func (s *topospecSite) draft(r *topospec.Revision) *v1.TopospecRevision {
	s.t.Helper()
	out, err := s.olga.Topospec().Draft(s.t.Context(), v1.NewTopospec{Name: "lab.yaml", Content: string(native.AppendTo(nil, r, native.YAML)), Reason: "planned"})
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

func (s *topospecSite) approve(r *v1.TopospecRevision) {
	s.t.Helper()
	if _, err := s.bob.Topospec().Approve(s.t.Context(), r.Revision, "", v1.TopospecApprove{Digest: r.Digest}); err != nil {
		s.t.Fatal(err)
	}
}

// activate asks until the service has seen all of the fabric.
func (s *topospecSite) activate(number uint64, mode string) {
	s.t.Helper()
	eventually(s.t, "activation", func() (bool, string) {
		_, err := s.bob.Topospec().Activate(s.t.Context(), number, "", v1.TopospecActivate{Mode: mode, Reason: "ticket"})
		return err == nil, fmt.Sprint(err)
	})
}

// applied waits until the Subnet Manager has a revision in force in a mode.
func (s *topospecSite) applied(number uint64, mode string) (st *v1.Topospec) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("revision %d in mode %s", number, mode), func() (bool, string) {
		var err error
		st, err = s.olga.Topospec().Get(s.t.Context())
		return err == nil && st.Applied && st.Revision == number && st.InForce.Mode == mode, fmt.Sprintf("%+v %v", st, err)
	})
	return st
}

// again kills the service and starts it again.
func (s *topospecSite) again() {
	s.t.Helper()
	s.d.kill()
	s.d = start(s.t, s.dir)
}

// active counts the end ports of the lab that are Active, as an outsider sees them.
func (s *topospecSite) active(lab *ibsimlab.Lab, hosts ...int) (n int) {
	s.t.Helper()
	for _, h := range hosts {
		if strings.Contains(ibsimtest.Diag(s.t, lab, "sm", "smpquery", "-D", "portinfo", "0,1", fmt.Sprint(h)), "LinkState:.......................Active") {
			n++
		}
	}
	return n
}

// exchanged is a revision in which the cables of two hosts are exchanged, and which
// allows for that.
func exchanged(r *topospec.Revision) *topospec.Revision {
	next := r.Clone()
	next.Policy.MinScore = 300
	var at []int
	for i := range next.Links {
		for _, e := range []ib.GUID{next.Links[i].A.GUID, next.Links[i].B.GUID} {
			if e == 0x200010 || e == 0x200020 {
				at = append(at, i)
			}
		}
	}
	a, b := &next.Links[at[0]], &next.Links[at[1]]
	a.B, b.B = b.B, a.B
	return next
}

// TestTopospecOnIbsim takes revisions through their life on a real simulated fabric: infiniband-diags sees the enforced
// state, and the rollback undoes it. A kill after each step loses nothing.
func TestTopospecOnIbsim(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "smpquery")
	lab := ibsimtest.Start(t, []byte(sixHosts()))
	s := newTopospecSite(t, sixHosts(), "ibsim:"+lab.Socket()+"/sm")
	s.rev.Policy.MinScore = 300
	first := s.draft(s.rev)
	s.again()
	s.approve(first)
	if _, err := s.olga.Topospec().Approve(t.Context(), first.Revision, "", v1.TopospecApprove{Digest: first.Digest}); err == nil || !strings.Contains(err.Error(), "wrote it") {
		t.Errorf("approved by its author: %v", err)
	}
	s.activate(1, "")
	s.again()
	s.applied(1, "observe")
	eventually(t, "every link verified", func() (bool, string) { // the fabric is discovered meanwhile
		st, err := s.olga.Topospec().Get(t.Context())
		return err == nil && st.InForce.Verified == 7 && st.InForce.Expected == 7, fmt.Sprintf("%+v %v", st, err)
	})
	s.activate(1, "enforce")
	s.again()
	s.applied(1, "enforce")
	s.settled()
	if n := s.active(lab, 1, 2, 3, 4, 5, 6); n != 6 {
		t.Errorf("%d hosts are active, want 6", n)
	}

	second := s.draft(exchanged(s.rev))
	sim, err := s.bob.Topospec().Simulate(t.Context(), second.Revision, v1.TopospecSimulate{})
	if err != nil || len(sim.Hits) != 2 || sim.Flips != 2 || !sim.Would || sim.Verified != 5 {
		t.Fatalf("%+v, %v", sim, err)
	}
	s.approve(second)
	s.activate(2, "")
	s.again()
	s.applied(2, "enforce")
	eventually(t, "two ports that are switched off", func() (bool, string) { n := s.active(lab, 1, 2, 3, 4, 5, 6); return n == 4, fmt.Sprint(n) })
	if n := s.active(lab, 3, 4, 5, 6); n != 4 {
		t.Errorf("%d of the others are active, want 4", n)
	}
	differing := []string{}
	for page, err := range s.olga.Fabric().Differing(t.Context(), v1.PageQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.Items {
			differing = append(differing, p.At+" "+p.Verdict+" "+p.State)
		}
	}
	if d := cmp.Diff(differing, []string{"leaf1/1 swapped disabled", "leaf1/2 swapped disabled"}); d != "" {
		t.Errorf("differing ports (-got +want):\n%s", d)
	}
	if _, err := s.bob.Topospec().Rollback(t.Context(), "", v1.TopospecRollback{Reason: "it was the drawing"}); err != nil {
		t.Fatal(err)
	}
	s.again()
	s.applied(1, "enforce")
	for i := 1; i <= 2; i++ {
		eventually(t, "a port that is switched on", func() (bool, string) {
			info := ibsimtest.Diag(t, lab, "sm", "smpquery", "-D", "portinfo", "0,1", fmt.Sprint(i))
			return strings.Contains(info, "PhysLinkState:...................Polling"), info
		})
		// ibsim does not train a link of which a port leaves Disabled; a cable that is
		// replugged does.
		ibsimtest.Console(t, lab, fmt.Sprintf(`unlink "h%d"[1]`, i))
		ibsimtest.Console(t, lab, fmt.Sprintf(`relink "h%d"[1]`, i))
	}
	eventually(t, "all ports back", func() (bool, string) { n := s.active(lab, 1, 2, 3, 4, 5, 6); return n == 6, fmt.Sprint(n) })

	s.d.stop()
	if e := lastAudit(t, s.dir, "topospec.rollback"); e.Actor != "bob" || e.Object != "topospec/1" || !strings.Contains(e.Detail, "it was the drawing") {
		t.Errorf("audit entry %+v", e)
	}
	if e := lastAudit(t, s.dir, "topospec.draft"); e.Actor != "operator" {
		t.Errorf("audit entry %+v", e)
	}
}

// TestTopospecTakenBackOnIbsim loses hosts after an activation: the revision before
// comes back by itself. Without the revision in force the service does not start.
func TestTopospecTakenBackOnIbsim(t *testing.T) {
	t.Parallel()
	lab := ibsimtest.Start(t, []byte(sixHosts()))
	s := newTopospecSite(t, sixHosts(), "ibsim:"+lab.Socket()+"/sm")
	s.rev.Policy.MinScore = 300
	first := s.draft(s.rev)
	s.approve(first)
	s.activate(1, "")
	s.applied(1, "observe")
	next := s.rev.Clone()
	next.Links[0].Reason = "a label"
	second := s.draft(next)
	s.approve(second)
	s.activate(2, "")
	if st := s.applied(2, "observe"); st.Watch == nil || st.Watch.Back != 1 || st.Watch.Least != 5 {
		t.Fatalf("%+v", st.Watch)
	}
	for i := 1; i <= 3; i++ {
		ibsimtest.Console(t, lab, fmt.Sprintf(`unlink "h%d"[1]`, i))
	}
	st := s.applied(1, "observe")
	if st.By != "service" || !strings.Contains(st.Reason, "4 links are verified, foretold were 7 and at least 5 must be") {
		t.Errorf("%+v", st)
	}

	s.d.stop()
	damageTopospec(t, s.dir)
	if said := refused(t, s.dir); !strings.Contains(said, "the subnet manager is not started") || !strings.Contains(said, "its content is not in the store") {
		t.Errorf("started without the revision in force:\n%s", said)
	}
}

// damageTopospec takes what the revision in force says out of the store of a service
// that is stopped.
func damageTopospec(t *testing.T, dir string) {
	t.Helper()
	c, err := config.Load(filepath.Join(dir, "portcullisd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	st, err := etcd.Open(t.Context(), etcd.Options{Dir: c.Path(c.StateDir), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	_, err = st.Update(t.Context(), func(tx *store.Tx) error {
		topology.Contents().Delete(tx, "0000000001")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
