package config

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestRoutingOptions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	roots, bad := filepath.Join(dir, "roots"), filepath.Join(dir, "bad")
	write(t, roots, "0x0010000200000001 # spine1\n")
	write(t, bad, "0x1\nspine\n")
	for _, tt := range []struct{ args, engines, complaint, problem string }{
		{args: "", engines: "minhop updn"},
		{args: "--engine TORUS-2qos,dfsssp,no_fallback", engines: "torus-2QoS dfsssp"},
		{args: "--engine ftree --root-guid-file " + roots, engines: "ftree"},
		{args: "--engine ftree,lash", complaint: "--engine \"ftree,lash\": there is no routing engine \"lash\": want some of dfp, dfsssp, dnup, dor, file, "},
		{args: "--max-lanes 9", complaint: "--max-lanes 9: want 1 to 8"},
		{args: "--root-guid-file " + bad, problem: bad + `:2: GUID "spine": want 0x`},
		{args: "--torus-config " + dir + "/none", problem: "none: no such file"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			o, complaint := smArgs(append(strings.Fields(tt.args), "--port", "sim:x")...)
			if !strings.Contains(complaint, tt.complaint) || (o == nil) != (tt.complaint != "") {
				t.Fatalf("said %q, want %q", complaint, tt.complaint)
			}
			if o == nil {
				return
			}
			core, err := o.Config.Fabric.Core(o.Config.Path)
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) {
					t.Errorf("got %v, want %s", err, tt.problem)
				}
				return
			}
			var names []string
			for _, e := range core.Engines {
				names = append(names, e.Name())
			}
			if got := strings.Join(names, " "); err != nil || got != tt.engines {
				t.Errorf("engines %s, error %v; want %s", got, err, tt.engines)
			}
		})
	}
}
