package eventlog_test

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"portcullis/attest/eventlog"
	"portcullis/attest/eventlog/eventlogtest"
	"portcullis/packaging/testenv"
)

// foreign is what tpm2_eventlog says of a log, as far as it is compared.
type foreign struct {
	Events []struct {
		PCR     int    `yaml:"PCRIndex"`
		Type    string `yaml:"EventType"`
		Digests []struct {
			Algorithm string `yaml:"AlgorithmId"`
			Digest    string `yaml:"Digest"`
		} `yaml:"Digests"`
	} `yaml:"events"`
	PCRs map[string]map[int]string `yaml:"pcrs"`
}

// TestToolsAgree has tpm2_eventlog read our logs: it finds the same events, and
// they lead to the same registers.
func TestToolsAgree(t *testing.T) {
	tool := testenv.Program(t, "tpm2_eventlog")
	m := eventlogtest.Example()
	update := m
	update.Firmware, update.Options = "2.20.0", []string{"virtual media"}
	alone := m
	alone.Banks = []eventlogtest.Bank{eventlogtest.SHA256}
	for _, m := range []eventlogtest.Machine{m, update, alone} {
		compare(t, tool, m.Boot().Bytes())
	}
}

// TestToolsAgreeOnFile compares what both say of the log PORTCULLIS_EVENT_LOG
// names, for logs of real machines; without it, of a boot of ours.
func TestToolsAgreeOnFile(t *testing.T) {
	tool := testenv.Program(t, "tpm2_eventlog")
	name := os.Getenv("PORTCULLIS_EVENT_LOG")
	if name == "" {
		m := eventlogtest.Example()
		compare(t, tool, m.Boot().Bytes())
		return
	}
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, tool, b)
}

func compare(t *testing.T, tool string, log []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, log, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), tool, file).Output()
	if err != nil {
		t.Fatalf("tpm2_eventlog: %v", err)
	}
	var theirs foreign
	if err := yaml.Load(out, &theirs); err != nil {
		t.Fatalf("tpm2_eventlog: %v", err)
	}
	ours := parse(t, log)
	n := 0
	for _, e := range theirs.Events {
		if e.Type == "EV_NO_ACTION" {
			continue
		}
		if n == len(ours.Events) {
			t.Fatalf("tpm2_eventlog finds more than our %d events", n)
		}
		got := ours.Events[n]
		for _, d := range e.Digests {
			if d.Algorithm == "sha256" && (d.Digest != got.Digest.String() || e.PCR != got.PCR) {
				t.Errorf("event %d: PCR %d %v, tpm2_eventlog says PCR %d %s", n, got.PCR, got.Digest, e.PCR, d.Digest)
			}
		}
		if e.Type != got.Type.String() && !strings.HasPrefix(e.Type, "Unknown") {
			t.Errorf("event %d: %v, tpm2_eventlog says %s", n, got.Type, e.Type)
		}
		n++
	}
	if n != len(ours.Events) || n == 0 {
		t.Errorf("%d events, tpm2_eventlog finds %d", len(ours.Events), n)
	}
	compareRegisters(t, ours.Replay(), theirs.PCRs["sha256"], ours)
}

func compareRegisters(t *testing.T, ours [eventlog.NumPCRs]eventlog.Digest, theirs map[int]string, l *eventlog.Log) {
	t.Helper()
	for pcr := range eventlog.NumPCRs {
		if len(l.Of(pcr)) == 0 {
			continue
		}
		text := strings.TrimPrefix(theirs[pcr], "0x")
		if b, err := hex.DecodeString(text); err != nil || len(b) != 32 || text != ours[pcr].String() {
			t.Errorf("PCR %d holds %v, tpm2_eventlog says %q", pcr, ours[pcr], theirs[pcr])
		}
	}
}
