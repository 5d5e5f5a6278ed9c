package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/agent/checklist"
	"portcullis/agent/hca/sysfs"
)

func TestDoctorToolsNeed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		have toolsNeed
		want []string
	}{
		{toolsNeed{root: true, admin: true}, nil},
		{toolsNeed{}, []string{"the account root", "the capability CAP_SYS_ADMIN"}},
		{toolsNeed{root: true}, []string{"the capability CAP_SYS_ADMIN"}},
		{toolsNeed{root: true, admin: true, closed: []string{"F: read-only file system"}}, []string{"writing to configuration space (F: read-only file system)"}},
	} {
		if d := cmp.Diff(tc.want, tc.have.missing()); d != "" {
			t.Errorf("%+v (-want +got):\n%s", tc.have, d)
		}
	}
}

// TestDoctorWays has an adapter on the bus whose node of fwctl is another kind of
// device, or none.
func TestDoctorWays(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := DefaultConfig()
	c.Sysfs, c.FWCTL = filepath.Join(dir, "sys"), filepath.Join(dir, "fwctl")
	const function = "sys/bus/pci/devices/0000:17:00.0/"
	for name, text := range map[string]string{
		function + "vendor": "0x15b3", function + "device": "0x1021", function + "class": "0x020700", function + "config": "",
	} {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(text+"\n"), 0o644))
	}
	look := func(change func()) map[string]checklist.Check {
		t.Helper()
		change()
		d := &doctor{config: &c}
		d.ways(t.Context())
		out := map[string]checklist.Check{}
		for _, c := range d.checks {
			out[c.Name] = c
		}
		return out
	}
	got := look(func() {})
	if f := got[checkFWCTL]; f.Result != checklist.Warning || !strings.Contains(f.Detail, "0000:17:00.0: the kernel has no node") || !strings.Contains(f.Hint, "no capability") {
		t.Errorf("fwctl: %+v", f)
	}
	need, err := whatToolsNeed(c.Sysfs, []sysfs.Function{{Address: "0000:17:00.0"}})
	must(t, err)
	if len(need.closed) > 0 {
		t.Errorf("configuration space that may be written is told to be closed: %q", need.closed)
	}
	need, err = whatToolsNeed(c.Sysfs, []sysfs.Function{{Address: "0000:18:00.0"}})
	must(t, err)
	if len(need.closed) != 1 || !strings.HasSuffix(need.closed[0], "no such file or directory") {
		t.Errorf("configuration space that is not there: %q", need.closed)
	}
	if v := look(func() { c.VendorTools = false })[checkTools]; v.Result != checklist.OK || !strings.Contains(v.Detail, "vendor_tools: false") {
		t.Errorf("tools that are not wanted: %+v", v)
	}
	for name, v := range look(func() { c.FWCTL = "unix:" + dir }) {
		if v.Result != checklist.Skipped || v.Detail != "the adapters are simulated" {
			t.Errorf("%s of simulated adapters: %+v", name, v)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
