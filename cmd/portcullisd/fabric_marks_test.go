package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/audit"
	"portcullis/api/client"
	"portcullis/api/store/etcd"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/config"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

func healthOf(t *testing.T, c *client.Client) (all []v1.FabricHealth) {
	t.Helper()
	for page, err := range c.Fabric().Health(t.Context(), v1.PageQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
	}
	return all
}

func activePorts(t *testing.T, c *client.Client) int {
	t.Helper()
	o, err := c.Fabric().Overview(t.Context())
	if err != nil {
		return -1
	}
	return o.Ports.Active
}

func mark(t *testing.T, c *client.Client, m v1.HealthMark) *v1.FabricHealth {
	t.Helper()
	h, err := c.Fabric().MarkHealth(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestMarksOverSocket closes a port of a fabric through the socket of a subnet
// manager alone. It stays closed over a restart, until it is released.
func TestMarksOverSocket(t *testing.T) {
	t.Parallel()
	lab := ibsimtest.Start(t, twoLevels(t))
	state := t.TempDir()
	c, d, _ := alone(t, lab, 24+6+4, "--state-dir", state)
	whole := activePorts(t, c)
	host := ""
	for page, err := range c.Fabric().Links(t.Context(), v1.LinkQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page.Items {
			if l.A.Name != "sm" && l.B.Name != "sm" && (strings.HasPrefix(l.A.Name, "h") || strings.HasPrefix(l.B.Name, "h")) {
				if host = l.A.Name; !strings.HasPrefix(host, "h") {
					host = l.B.Name
				}
			}
		}
	}
	h := mark(t, c, v1.HealthMark{Place: host, Mark: v1.MarkUnhealthy, Reason: "cable is dirty"})
	if !h.Unhealthy || h.Condition != "marked" || h.Action != "isolate" || h.Reason != "cable is dirty" || time.Since(h.Since) > time.Minute {
		t.Errorf("answer %+v", h)
	}
	closed := func() (bool, string) { return activePorts(t, c) == whole-2, d.lines.String() }
	eventually(t, "a port that is closed", closed)
	d.stop()
	c, d, _ = alone(t, lab, 24+6+4-1, "--state-dir", state)
	eventually(t, "a port that is closed after a restart", closed)
	if all := healthOf(t, c); len(all) != 1 || all[0].Place != h.Place || all[0].Reason != h.Reason {
		t.Errorf("after a restart: %+v", all)
	}
	if h := mark(t, c, v1.HealthMark{Place: h.Place.String(), Mark: v1.MarkNone}); h.Unhealthy || h.Mark != "" {
		t.Errorf("released: %+v", h)
	}
	eventually(t, "a port that is open again", func() (bool, string) { return activePorts(t, c) == whole, d.lines.String() })
	if _, err := c.Fabric().MarkHealth(t.Context(), v1.HealthMark{Place: "leaf1", Mark: v1.MarkUnhealthy}); err == nil || !strings.Contains(err.Error(), "reason") {
		t.Errorf("a mark without a reason: %v", err)
	}
	if _, err := c.Fabric().MarkHealth(t.Context(), v1.HealthMark{Place: "0xdead/3", Mark: v1.MarkUnhealthy, Reason: "x"}); err == nil {
		t.Error("a mark at no place is taken")
	}
}

// TestMarksOverAPI marks through the service: the audit log names the actor of each mark.
func TestMarksOverAPI(t *testing.T) {
	t.Parallel()
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	dir, address := install(t, "--fabric-port", "ibsim:"+lab.Socket()+"/sm")
	d := start(t, dir)
	c := operator(t, dir, address)
	eventually(t, "a settled fabric", func() (bool, string) {
		o, err := c.Fabric().Overview(t.Context())
		return err == nil && o.Settled, d.lines.String()
	})
	h := mark(t, c, v1.HealthMark{Place: "0x100000/1", Mark: v1.MarkUnhealthy, Reason: "for a test"})
	eventually(t, "a port that is closed", func() (bool, string) { return activePorts(t, c) == 4, d.lines.String() })
	if !strings.Contains(d.lines.String(), "for a test") {
		t.Error("the log does not say why")
	}
	d.stop()
	if e := lastAudit(t, dir, "fabric.health"); e.Object != "fabric/"+h.Place.String() || e.Code != v1.MarkUnhealthy || e.Detail != "for a test" || e.Actor == "" {
		t.Errorf("audit entry %+v", e)
	}
	d = start(t, dir)
	eventually(t, "the mark after a restart", func() (bool, string) {
		all := 0
		for page, err := range c.Fabric().Health(context.WithoutCancel(t.Context()), v1.PageQuery{}) {
			if err != nil {
				return false, err.Error()
			}
			all += len(page.Items)
		}
		return all == 1, d.lines.String()
	})
	mark(t, c, v1.HealthMark{Place: h.Place.String(), Mark: v1.MarkNone})
	eventually(t, "a port that is open again", func() (bool, string) { return activePorts(t, c) == 6, d.lines.String() })
}

// lastAudit returns the newest audit entry of an action of a service that is stopped.
func lastAudit(t *testing.T, dir, action string) (last audit.Entry) {
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
	entries, _, err := audit.Entries().List(t.Context(), st, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Value.Action == action {
			last = e.Value
		}
	}
	return last
}
