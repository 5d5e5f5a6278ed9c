package attest_test

import (
	"testing"

	"portcullis/attest"
)

// TestJudgingNamesWhatLapsesDependOn checks that Judging names everything that Lapses depends on. Otherwise a change would
// be overlooked, and hosts would not be judged again.
func TestJudgingNamesWhatLapsesDependOn(t *testing.T) {
	base, err := attest.DefaultPolicy().Judging()
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*attest.Policy){
		"deny":         func(p *attest.Policy) { p.Denied = map[string]bool{"00": true} },
		"TPM firmware": func(p *attest.Policy) { p.TPMFirmware = []attest.TPMFirmware{{Maker: "id:1", Model: "m"}} },
		"starts":       func(p *attest.Policy) { p.Starts = []attest.Start{{Agent: "1"}} },
		"floors":       func(p *attest.Policy) { p.FirmwareFloors = []attest.FirmwareFloor{{PSID: "p", Min: "1.2"}} },
		"assurance":    func(p *attest.Policy) { p.Assurance = attest.G2 },
		"lock":         func(p *attest.Policy) { p.RequireLock = false },
		"DPU":          func(p *attest.Policy) { p.AcceptDPU = true },
	} {
		p := attest.DefaultPolicy()
		change(p)
		if got, err := p.Judging(); err != nil || got == base {
			t.Errorf("%s: %v, as without the change", name, err)
		}
	}
	p := attest.DefaultPolicy()
	p.SessionLife *= 2
	if got, err := p.Judging(); err != nil || got != base {
		t.Errorf("the life of sessions has every host judged again: %v", err)
	}
}

// Facts without a statement meet no policy.
func TestFactsWithoutStatementLapse(t *testing.T) {
	got := attest.DefaultPolicy().Lapses(&attest.Facts{})
	if len(got) != 1 || got[0].Cause != attest.LapseAdapter || got[0].Reason != attest.ReasonStatement {
		t.Errorf("%+v", got)
	}
}
