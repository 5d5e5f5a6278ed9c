package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topospec"
)

// TestTopologyOfTheConfiguration: a topoconfig.conf becomes what the core compares
// the fabric with.
func TestTopologyOfTheConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := write("topoconfig.conf", "0x0010000100000001,1,0x0020000000000001,1,Any,Active\n0x0010000100000001,2,-,-,Any,Disabled\n")
	cut := write("cut.conf", "0x0010000100000001,1,0x00200000000")
	for _, tt := range []struct {
		name, file, mode string
		want             sm.TopologyConfig
		err              string
	}{
		{name: "none", mode: "observe"},
		{name: "enforced", file: good, mode: "enforce", want: sm.TopologyConfig{Mode: topospec.Enforce}},
		{name: "cut off", file: cut, mode: "warn", err: "cut.conf"},
		{name: "missing", file: filepath.Join(dir, "none"), mode: "warn", err: "fabric.topology.file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := defaultFabric()
			f.Topology = Topology{File: tt.file, Mode: tt.mode}
			c, err := f.Core(func(s string) string { return s })
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want one about %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Topology.Mode != tt.want.Mode || (c.Topology.Spec != nil) != (tt.file != "") {
				t.Errorf("%+v", c.Topology)
			}
		})
	}
}
