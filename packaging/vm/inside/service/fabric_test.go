//go:build vm

package service_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/packaging/vm/inside/guest"
)

const (
	service = "portcullisd.service"
	adapter = "mlx5_0"
	// fabricSays begins what the status line says of the fabric; a fabric that is settled is not spoken of.
	fabricSays = "fabric: "
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

// known is what must outlast upgrades, crashes and purges.
type known struct {
	Tenants, Clusters, Hosts []any
	LIDs                     map[string]any // by GUID of the port
	Keys                     map[string]any // when the M_Key was given, by GUID of the port
}

// knows asks the service.
func knows(t *testing.T) known {
	t.Helper()
	k := known{
		Tenants: list(t, "tenant", "list"), Clusters: list(t, "cluster", "list"),
		LIDs: map[string]any{}, Keys: map[string]any{},
	}
	for _, host := range list(t, "host", "list") {
		h := host.(map[string]any)
		k.Hosts = append(k.Hosts, []any{h["id"], h["ek"], h["cluster"]})
	}
	for _, port := range list(t, "fabric", "ports") {
		if p := port.(map[string]any); p["lid"] != nil {
			k.LIDs[p["guid"].(string)] = p["lid"]
		}
	}
	for _, key := range list(t, "fabric", "keys") {
		d := key.(map[string]any)
		k.Keys[d["guid"].(string)] = []any{d["kind"], d["state"], d["epoch"], d["since"]}
	}
	if len(k.Tenants) == 0 || len(k.Clusters) == 0 || len(k.Hosts) == 0 || len(k.LIDs) < 6 || len(k.Keys) < 10 {
		t.Fatalf("the service does not know all that it was told: %+v", k)
	}
	return k
}

// list returns the items that a command lists.
func list(t *testing.T, command ...string) []any {
	t.Helper()
	var page struct{ Items []any }
	if err := json.Unmarshal([]byte(portcullis(t, append(command, "--json")...)), &page); err != nil {
		t.Fatal(err)
	}
	return page.Items
}

// remembers compares what the service knows with what it knew, and ends the test where it wrote to the fabric.
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
	var status struct {
		SMPs map[string]int `json:"smps"`
	}
	if err := json.Unmarshal([]byte(portcullis(t, "sm", "status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	if status.SMPs["Get PortInfo"] == 0 {
		t.Fatalf("the service counted no request: %v", status.SMPs)
	}
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

// simulator tells the simulator a command.
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
