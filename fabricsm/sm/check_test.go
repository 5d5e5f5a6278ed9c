package sm_test

import (
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/portpolicy"
)

func TestConfigCheck(t *testing.T) {
	tests := []struct {
		name string
		cfg  sm.Config
		want string // part of the error, empty: none
	}{
		{"nothing said", sm.Config{}, ""},
		{"no audit", sm.Config{AuditPeriod: -1}, ""},
		{"priority", sm.Config{Priority: 16}, "priority 16: want 0 to 15"},
		{"window", sm.Config{Window: -1}, "window is negative"},
		{"tries", sm.Config{Tries: -3}, "tries is negative"},
		{"late", sm.Config{Late: -time.Second}, "late is negative"},
		{"retries", sm.Config{RetryMin: time.Hour, RetryMax: time.Minute}, "shortest retry 1h0m0s: want at most the longest, 1m0s"},
		{"enforcement", sm.Config{Enforcement: 7}, "enforcement 7"},
		{"SL to VL", sm.Config{SLtoVL: 9}, "SL-to-VL mode 9"},
		{"MTU", sm.Config{Ports: portpolicy.Config{MaxMTU: 6}}, "largest MTU 6: want 0 to 5"},
		{"VLs", sm.Config{Ports: portpolicy.Config{MaxOperationalVLs: 6}}, "most VLs 6"},
		{"subnet timeout", sm.Config{Ports: portpolicy.Config{SubnetTimeOut: 32}}, "subnet timeout 32: want 0 to 31"},
		{"packet lifetime", sm.Config{Ports: portpolicy.Config{PacketLifetime: 32}}, "packet lifetime 32"},
		{"HOQ life", sm.Config{Ports: portpolicy.Config{HOQLife: 40}}, "head-of-queue lifetime 40"},
		{"leaf HOQ life", sm.Config{Ports: portpolicy.Config{LeafHOQLife: 40}}, "head-of-queue lifetime towards hosts 40"},
		{"stall count", sm.Config{Ports: portpolicy.Config{VLStallCount: 8}}, "VL stall count 8: want 0 to 7"},
		{"SL", sm.Config{Ports: portpolicy.Config{MasterSMSL: 16}}, "SL to the subnet manager 16"},
		{"errors", sm.Config{Ports: portpolicy.Config{LocalPhyErrors: 16}}, "threshold of local physical errors 16"},
		{"overruns", sm.Config{Ports: portpolicy.Config{OverrunErrors: 16}}, "threshold of overrun errors 16"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.cfg.Check()
			if tt.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Check: %v, want %q", err, tt.want)
			}
		})
	}
}

// TestLargestConfig: the largest values that Check lets through fit into their
// fields.
func TestLargestConfig(t *testing.T) {
	cfg := sm.Config{Priority: 15, AuditPeriod: -1, SLtoVL: sm.SLtoVLOff, Ports: portpolicy.Config{
		MaxMTU: ib.MTU4096, MaxOperationalVLs: 5, SubnetTimeOut: 31, PacketLifetime: 31, HOQLife: 31, LeafHOQLife: 31,
		VLStallCount: 7, MasterSMSL: 15, LocalPhyErrors: 15, OverrunErrors: 15,
	}}
	if err := cfg.Check(); err != nil {
		t.Fatal(err)
	}
	e := newEnv(t, tree(t, 4, 8), sim.Options{}, cfg, 1)
	e.start()
	e.mustSettle(20 * time.Second)
}
