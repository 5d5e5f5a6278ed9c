//go:build vm

package service_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/packaging/vm/inside/guest"
)

const (
	service = "portcullisd.service"
	adapter = "mlx5_0"
	// fabricSays begins what the status line says of the fabric; a fabric that is settled is not spoken of.
	fabricSays = "sm: "
)

// journalEnd returns what happened last.
func journalEnd(t *testing.T) string {
	return guest.Try(t, "journalctl", "--no-pager", "--lines=60").Out
}

// settled waits until the service runs in a process that is not the one given, and its fabric is settled. It returns the
// properties of the unit.
func settled(t *testing.T, pid string) map[string]string {
	t.Helper()
	var now map[string]string
	guest.Eventually(t, guest.UnitLimit, "the service runs and its fabric is settled", func() bool {
		now = guest.Unit(t, service)
		return now["ActiveState"] == "active" && now["MainPID"] != pid &&
			strings.HasPrefix(now["StatusText"], "serving") && !strings.Contains(now["StatusText"], fabricSays)
	})
	return now
}

// operator runs the operator's program.
func operator(t *testing.T, args ...string) guest.Ended {
	t.Helper()
	return guest.Try(t, "portcullis", append(args, "--service", "https://localhost:8443",
		"--ca", "/etc/portcullis/tls/ca.pem", "--token-file", "/etc/portcullis/operator.token")...)
}

// portcullis runs it and returns its standard output. It must succeed.
func portcullis(t *testing.T, args ...string) string {
	t.Helper()
	e := operator(t, args...)
	if e.Code != 0 {
		t.Fatalf("portcullis %s: exit status %d\n%s", strings.Join(args, " "), e.Code, e.All)
	}
	return e.Out
}

// ask returns a client of the service, with the operator's token of now.
func ask(t *testing.T) *client.Client {
	t.Helper()
	ca, err := os.ReadFile("/etc/portcullis/tls/ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: "https://localhost:8443", CA: ca, Token: guest.Read(t, "/etc/portcullis/operator.token")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// known is what must outlast upgrades, crashes and purges.
type known struct {
	Tenants  []v1.Tenant
	Clusters []v1.Cluster
	Hosts    map[string][2]string // EK and cluster, by name
	LIDs     map[ib.GUID]ib.LID
	Keys     map[ib.GUID]string // which M_Key the device has, and since when
}

// knows asks the service.
func knows(t *testing.T) known {
	t.Helper()
	c, k := ask(t), known{Hosts: map[string][2]string{}, LIDs: map[ib.GUID]ib.LID{}, Keys: map[ib.GUID]string{}}
	var err error
	if k.Tenants, err = c.Tenants().All(t.Context()); err != nil {
		t.Fatal(err)
	}
	if k.Clusters, err = c.Clusters().All(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The earlier version reports no version of tenants and clusters.
	for i := range k.Tenants {
		k.Tenants[i].Version = ""
		k.Tenants[i].Use = v1.TenantUse{} // it is counted for each answer, and an earlier release does not show it
	}
	for i := range k.Clusters {
		k.Clusters[i].Version = ""
	}
	hosts, err := c.Hosts().All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts {
		k.Hosts[h.ID] = [2]string{h.EK, h.Cluster}
	}
	for page, err := range c.Fabric().Ports(t.Context(), v1.PortQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range page.Items {
			if p.LID != 0 {
				k.LIDs[p.GUID] = p.LID
			}
		}
	}
	for page, err := range c.Keys().Devices(t.Context(), v1.PageQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Items {
			k.Keys[d.GUID] = fmt.Sprint(d.Kind, d.State, d.Epoch, d.Since)
		}
	}
	if len(k.Tenants) == 0 || len(k.Clusters) == 0 || len(k.Hosts) == 0 || len(k.LIDs) < 6 || len(k.Keys) < 10 {
		t.Fatalf("the service does not know all that it was told: %+v", k)
	}
	return k
}

// remembers compares the service's data with its earlier data, and ends the test if the service wrote to the fabric.
func remembers(t *testing.T, before known) {
	t.Helper()
	if d := cmp.Diff(before, knows(t)); d != "" {
		t.Fatalf("what the service knows (-before +now):\n%s", d)
	}
	if sent := sets(t); len(sent) > 0 {
		t.Fatalf("the fabric was as it should be, and was written to: %v", sent)
	}
}

// sets returns how many requests that change the fabric the service sent since it was started, by attribute. SwitchInfo is not
// among them: each time a switch is audited, its bit PortStateChange is cleared.
func sets(t *testing.T) map[string]int {
	t.Helper()
	began, err := time.Parse("Mon 2006-01-02 15:04:05 MST", guest.Unit(t, service)["ExecMainStartTimestamp"])
	if err != nil {
		t.Fatal(err)
	}
	c, status := ask(t), &v1.SM{}
	guest.Eventually(t, guest.UnitLimit, "the service says what it sent since it was started", func() bool {
		if status, err = c.SM().Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		return status.Settled && status.SMPs["Get PortInfo"] > 0 && !status.Updated.Before(began)
	})
	maps.DeleteFunc(status.SMPs, func(name string, _ int) bool {
		return !strings.HasPrefix(name, "Set ") || name == "Set SwitchInfo"
	})
	return status.SMPs
}

// isSM reports whether the adapter's port shows that a Subnet Manager runs behind it.
func isSM(t *testing.T) bool {
	t.Helper()
	text := guest.Read(t, filepath.Join("/sys/class/infiniband", adapter, "ports/1/cap_mask"))
	mask, err := strconv.ParseUint(text, 0, 32)
	if err != nil {
		t.Fatal(err)
	}
	return mask&2 != 0
}

// device returns the path of the adapter's user MAD device, "umad" or "issm", or "" where there is none.
func device(t *testing.T, kind string) string {
	t.Helper()
	for _, dir := range glob(t, "/sys/class/infiniband_mad/"+kind+"[0-9]*") {
		if of, err := os.ReadFile(filepath.Join(dir, "ibdev")); err == nil && strings.TrimSpace(string(of)) == adapter {
			return filepath.Join("/dev/infiniband", filepath.Base(dir))
		}
	}
	return ""
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// simulator sends the simulator a command.
func simulator(t *testing.T, command string) {
	t.Helper()
	f, err := os.OpenFile("/run/fabric", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(command + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// unplug takes the adapter away, and returns what puts it back.
func unplug(t *testing.T) (plug func()) {
	t.Helper()
	simulator(t, `pull "sm"`)
	guest.Eventually(t, guest.UnitLimit, "the adapter is gone", func() bool { return !guest.Exists("/sys/class/infiniband/" + adapter) })
	return func() {
		t.Helper()
		simulator(t, `plug "sm"`)
	}
}
