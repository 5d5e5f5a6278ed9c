//go:build vm

package umad_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"portcullis/packaging/vm/inside/guest"
)

// distantGUID is the port GUID of the host whose cable is pulled.
const distantGUID = "0x0020000000000401"

// TestCables is items 3, 4, 5 and 7 of step 3.
func TestCables(t *testing.T) {
	f := newFabric(t, ourNode, tester)
	// With so short a period requests are under way whenever a cable is pulled.
	m := manage(t, ours, "--audit-period", "2s")
	t.Run("of a host", func(t *testing.T) {
		for _, c := range []struct{ command, event string }{{"unlink", "port-gone"}, {"relink", "port-placed"}} {
			from := m.now()
			f.do(c.command + " " + distant + " 1")
			m.tells(from, "trap 128", func(e event) bool {
				return e.Event == "trap-received" && strings.HasPrefix(e.Fields["trap"], "128 ")
			})
			m.tells(from, c.event, func(e event) bool { return e.Event == c.event && e.Fields["guid"] == distantGUID })
			t.Logf("%s: %s", c.command, m.settled(from).Text)
		}
	})
	t.Run("of our own port", func(t *testing.T) { ownCable(t, f, m) })
	t.Run("switch without power", func(t *testing.T) {
		from := m.now()
		f.do("unlink leaf2")
		m.until(from, "three hosts gone", func(out string) bool { return countEvents(out, "port-gone") == 3 })
		from = m.now()
		f.do("relink leaf2")
		back := m.until(from, "three hosts back", func(out string) bool { return countEvents(out, "port-placed") == 3 })
		m.tells(from, "a fabric that is settled with them", func(e event) bool { return e.Event == "settled" && e.SMPs > 0 })
		if n := countEvents(back, "port-gone"); n != 0 {
			t.Errorf("%d other ports went away", n)
		}
	})
	t.Run("killed", func(t *testing.T) {
		if got := sm(t, ours); !got {
			t.Error("IsSM is not set while it runs")
		}
		m.signal(os.Kill)
		if got := sm(t, ours); got {
			t.Error("the kernel did not clear IsSM")
		}
		if out := guest.Do(t, "smpquery", "-C", theirs, "-D", "portinfo", "0,1,1", "1"); strings.Contains(out, "IsSM\n") {
			t.Errorf("the other node still sees IsSM:\n%s", out)
		}
		if e := guest.Try(t, "sminfo", "-C", theirs, "-t", "200"); e.Code == 0 {
			t.Errorf("sminfo still finds it: %s", e.Out)
		}
		begun := time.Now()
		m = manage(t, ours)
		t.Logf("attached and settled after %v", time.Since(begun))
		guest.Do(t, "sminfo", "-C", theirs)
	})
}

// ownCable pulls the cable of our port for some seconds.
func ownCable(t *testing.T, f *fabric, m *manager) {
	from := m.now()
	f.do("unlink " + ourNode + " 1")
	m.becomes(from, "Discovering")
	select {
	case <-m.ended:
		t.Fatal("the Subnet Manager ended")
	case <-time.After(2 * time.Second): // without a cable
	}
	from = m.now()
	f.do("relink " + ourNode + " 1")
	m.becomes(from, "Master")
	t.Logf("%+v", m.settled(from))
	guest.Eventually(t, patience, "the other node finds no Subnet Manager", func() bool {
		return guest.Try(t, "sminfo", "-C", theirs).Code == 0
	})
}

// countEvents returns how many events of a name a text has.
func countEvents(text, name string) (n int) {
	for _, e := range events(text) {
		if e.Event == name {
			n++
		}
	}
	return n
}

// TestAdapterPulled is item 6 of step 3, for a Subnet Manager alone: it says that the port went away, and ends. The lab of the
// service has it attach again.
func TestAdapterPulled(t *testing.T) {
	f := newFabric(t, ourNode)
	m := manage(t, ours)
	begun := time.Now()
	f.pull(ourNode)
	m.wait()
	t.Logf("it ended %v after the pull", time.Since(begun))
	if code := m.cmd.ProcessState.ExitCode(); code != 1 || !strings.Contains(m.output(), "mlx5_0 port 1 went away") {
		t.Errorf("exit status %d:\n%s", code, last(m.output(), 1000))
	}
}
