package admission

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// TestTranscripts runs the stories in testdata/transcripts: actions of an operator, an agent and the fabric, and the
// answers of the service. Between the commands the service settles, as Run makes it do.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		l := newLab(t, member.Open(t))
		l.options = func(o *Options) { o.PKeyMinAge = time.Hour }
		l.restart()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out := l.command(t, d)
			l.settle()
			return out
		})
		if _, err := audit.Verify(t.Context(), l.store); err != nil {
			t.Error(err)
		}
	})
}

func (l *lab) command(t *testing.T, d *datadriven.TestData) string {
	arg := func(i int) string {
		if i < len(d.CmdArgs) {
			return d.CmdArgs[i].Key
		}
		return ""
	}
	value := func(key string) string {
		var v string
		d.MaybeScanArgs(t, key, &v)
		return v
	}
	switch d.Cmd {
	case "hosts":
		var n int
		d.ScanArgs(t, "n", &n)
		l.addHosts(n)
		return fmt.Sprintf("%d hosts imported\n", n)
	case "import":
		return l.importText(d.Input, false)
	case "dry-run":
		return l.importText(d.Input, true)
	case "tenant":
		return l.tenantCommand(arg(0), arg(1))
	case "cluster":
		return l.clusterCommand(arg(0), arg(1), value("tenant"))
	case "assign":
		a := v1.Assignment{Cluster: value("cluster")}
		d.MaybeScanArgs(t, "window", &a.Window)
		h, err := l.svc.Assign(l.ctx(), "alice", arg(0), a)
		return phase(h, err)
	case "release":
		h, err := l.svc.Release(l.ctx(), "alice", arg(0))
		return phase(h, err)
	case "resolve":
		h, err := l.svc.ResolveGUID(l.ctx(), "alice", arg(0), v1.GUIDResolved{Reason: "looked at"})
		return phase(h, err)
	case "reboot", "tpm-restart":
		if b := &l.hosts[arg(0)].Boot; d.Cmd == "reboot" {
			b.Reset, b.Restart = b.Reset+1, 0
		} else {
			b.Restart++
		}
		return fmt.Sprintf("TPM of %s: %v\n", arg(0), l.hosts[arg(0)].Boot)
	case "attest":
		return l.attestCommand(arg(0), value("guids-of"), value("tpm-of"))
	case "fabric":
		return l.fabricCommand(t, d, arg(0), arg(1))
	case "wait":
		w, err := time.ParseDuration(arg(0))
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		l.clock = l.clock.Add(w)
		return l.clock.Format("it is 15:04:05\n")
	case "restart":
		l.restart()
		return "the service starts anew over the same store\n"
	case "show":
		return showHost(l.host(arg(0)))
	case "list":
		return l.list()
	case "quarantine":
		return l.quarantine()
	case "audit":
		return l.auditLog()
	default:
		d.Fatalf(t, "unknown command %q", d.Cmd)
		return ""
	}
}

func (l *lab) importText(input string, dry bool) string {
	r, err := l.svc.ImportInventory(l.ctx(), "alice", []inventory.File{{Name: "import.yaml", Data: []byte(input)}}, v1.RepairTicket{}, dry)
	if err != nil {
		return told(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "added %v, unchanged %d, not in file %v\n", r.Added, r.Unchanged, r.NotInFile)
	for _, c := range r.Changed {
		fmt.Fprintf(&b, "changed %s: %s\n", c.Host, strings.Join(c.Fields, "; "))
	}
	return b.String()
}

func (l *lab) tenantCommand(verb, name string) string {
	if verb == "delete" {
		return told(l.svc.Tenancy().DeleteTenant(l.ctx(), "alice", name))
	}
	_, err := l.svc.Tenancy().CreateTenant(l.ctx(), "alice", v1.NewTenant{Name: name})
	return told(err)
}

func (l *lab) clusterCommand(verb, name, tenant string) string {
	if verb == "delete" {
		return told(l.svc.Tenancy().DeleteCluster(l.ctx(), "alice", name))
	}
	c, err := l.svc.Tenancy().CreateCluster(l.ctx(), "alice", v1.NewCluster{Name: name, Tenant: tenant})
	if err != nil {
		return told(err)
	}
	return fmt.Sprintf("cluster %s has P_Key %v\n", c.Name, c.PKey)
}

// attestCommand runs an agent, maybe one that lies.
func (l *lab) attestCommand(host, guidsOf, tpmOf string) string {
	honest := *l.hosts[host]
	defer func() { l.hosts[host] = &honest }()
	liar := honest
	if guidsOf != "" {
		liar.Statement.HCAs = l.hosts[guidsOf].Statement.HCAs
	}
	if tpmOf != "" {
		liar.EK, liar.Certificate = l.hosts[tpmOf].EK, l.hosts[tpmOf].Certificate
	}
	l.hosts[host] = &liar
	r, err := l.attestInThisBoot(host)
	if err != nil {
		return told(err)
	}
	return fmt.Sprintf("accepted: host %s is %s\n", r.Host, r.Phase)
}

func (l *lab) fabricCommand(t *testing.T, d *datadriven.TestData, verb, host string) string {
	switch verb {
	case "sees":
		l.fabric.place(t, l.ports(host)...)
	case "loses":
		for _, p := range l.ports(host) {
			l.fabric.show(t, p.GUID, records.Port{})
		}
	case "moves":
		var place ib.Place
		var at string
		d.ScanArgs(t, "to", &at)
		if err := place.UnmarshalText([]byte(at)); err != nil {
			d.Fatalf(t, "%v", err)
		}
		l.fabric.show(t, l.ports(host)[0].GUID, records.Port{Place: place, HCACap: 32, SwitchCap: 32})
	case "small":
		for _, p := range l.ports(host) {
			l.fabric.show(t, p.GUID, records.Port{Place: p.Cable, HCACap: 32, SwitchCap: 1})
		}
	case "silent", "answers":
		for _, p := range l.ports(host) {
			l.fabric.silent[p.GUID] = verb == "silent"
		}
	case "refuses":
		l.refuse(t, host)
	case "programs":
		l.fabric.program(t)
	}
	return l.fabricText(host)
}

func (l *lab) refuse(t *testing.T, host string) {
	snap, err := l.store.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, err := l.svc.gather(t.Context(), snap, host)
	if err != nil {
		t.Fatal(err)
	}
	for k := range f.grants {
		l.fabric.report(t, k, records.Membership{State: records.Refused, Reason: "switch port cannot enforce P_Keys", Revision: snap.Revision})
	}
}

func (l *lab) fabricText(host string) string {
	if host == "" {
		return "ok\n"
	}
	var b strings.Builder
	for _, p := range l.ports(host) {
		fmt.Fprintf(&b, "switch port %v: %v\n", p.Cable, l.fabric.holds(p.Cable))
	}
	return b.String()
}

func phase(h *v1.Host, err error) string {
	if err != nil {
		return told(err)
	}
	return fmt.Sprintf("host %s is %s\n", h.ID, h.Status.Phase)
}

// told returns what a caller learns of an error: an operator all of it, an agent no more than that it was refused.
func told(err error) string {
	var e *refusal.Error
	var no *attest.Refusal
	switch {
	case err == nil:
		return "ok\n"
	case errors.As(err, &no):
		return fmt.Sprintf("refused (recorded: %s)\n", no.Code)
	case errors.As(err, &e):
		out := fmt.Sprintf("%v, %s: %v\n", e.Status, e.Code, e)
		if e.Hint != "" {
			out += "hint: " + e.Hint + "\n"
		}
		return out
	default:
		return "unexpected error: " + err.Error() + "\n"
	}
}

func showHost(h *v1.Host) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s since %s", h.ID, h.Status.Phase, h.Status.Since.Format("15:04:05"))
	if h.Cluster != "" {
		fmt.Fprintf(&b, ", cluster %s of %s", h.Cluster, h.Tenant)
	}
	if h.Status.PKey != 0 {
		fmt.Fprintf(&b, ", P_Key %v", h.Status.PKey)
	}
	b.WriteString("\n")
	for _, g := range h.Status.Guards {
		mark := "met"
		if !g.Met {
			mark = g.Detail
		}
		fmt.Fprintf(&b, "  %-10s %s\n", g.Name, mark)
	}
	for _, a := range h.HCAs {
		for _, p := range a.Ports {
			fmt.Fprintf(&b, "  port %v cabled %v seen %v P_Keys %v\n", p.GUID, p.Cabled, p.Seen, p.PKeys)
		}
	}
	if d := h.Status.LastDenial; d != nil {
		fmt.Fprintf(&b, "  last denial %s: %s\n", d.Code, d.Detail)
	}
	return b.String()
}

func (l *lab) list() string {
	hosts, err := l.svc.Hosts(l.ctx(), v1.HostQuery{})
	if err != nil {
		return told(err)
	}
	var b strings.Builder
	for _, h := range hosts.Items {
		fmt.Fprintf(&b, "%s %s %s\n", h.ID, h.Status.Phase, h.Cluster)
	}
	return b.String()
}

func (l *lab) quarantine() string {
	keys, err := l.svc.Tenancy().QuarantinedPKeys(l.ctx(), v1.PageQuery{})
	if err != nil {
		return told(err)
	}
	var b strings.Builder
	for _, k := range keys.Items {
		fmt.Fprintf(&b, "%v since %s\n  %s\n", k.PKey, k.Since.Format("15:04:05"), strings.Join(k.Waiting, "\n  "))
	}
	if len(keys.Items) == 0 {
		return "none\n"
	}
	return b.String()
}

func (l *lab) auditLog() string {
	entries, _, err := audit.Entries().List(l.ctx(), l.store, "")
	if err != nil {
		return told(err)
	}
	var b strings.Builder
	for _, r := range entries {
		e := r.Value
		detail, _, _ := strings.Cut(e.Detail, "; EK ")
		if e.Action == "evidence.accept" {
			_, detail, _ = strings.Cut(detail, " from ")
		}
		fmt.Fprintf(&b, "%d %s %s %s %s %s: %s\n", e.Seq, e.Time.Format("15:04:05"), e.Actor, e.Action, e.Object, e.Code, detail)
	}
	return b.String()
}
