package main

import (
	"encoding/json"
	"strings"
	"testing"

	"portcullis/fabricsm/drill/result"
)

func TestDrill(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"one", []string{"drill", "T1"}, exitOK, []string{"T1 passed: send data", "  tried  ", "  stopped by  ", "  reported  ", "detected after", "1 of 1 drills passed"}},
		{"several", []string{"drill", "T1", "t2"}, exitOK, []string{"THREAT  RESULT", "\nT1      passed", "\nT2      passed", "2 of 2 drills passed"}},
		{"without its control", []string{"drill", "T1", "--without", "switch_enforcement"}, exitError, []string{"T1 FAILED", "reached h2", "without [switch_enforcement]"}},
		{"list", []string{"drill", "list"}, exitOK, []string{"  T17   ", "  switch_enforcement "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, out, complaint := call(t, "", tt.args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d; %s", code, tt.code, complaint)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("said\n%s\nwant %q in it", out, want)
				}
			}
		})
	}
}

func TestDrillJSON(t *testing.T) {
	code, out, complaint := call(t, "", "drill", "T1", "--json", "--seed", "7")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, complaint)
	}
	var got struct {
		Seed   uint64
		Passed int
		Drills []struct {
			ID       string
			Detected *float64 `json:"detected_s"`
			Victims  result.Felt
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	if got.Seed != 7 || got.Passed != 1 || len(got.Drills) != 1 || got.Drills[0].ID != "T1" || got.Drills[0].Detected == nil || got.Drills[0].Victims.Sent == 0 {
		t.Errorf("got %+v from %s", got, out)
	}
}
