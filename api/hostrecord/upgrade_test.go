package hostrecord

import (
	"encoding/json"
	"strings"
	"testing"

	"portcullis/attest"
)

// TestUpgradeVerdict: records of an older service can still be read.
func TestUpgradeVerdict(t *testing.T) {
	t.Parallel()
	const stored = `{"ok":true,"facts":{"host":"a","session":"s","boot":{"reset":3,"restart":0,"clock":18446744073709551615,"safe":true},` +
		`"statement":{"version":1,"host":"a","hcas":[{"name":"mlx5_0","node_guid":"0x0002c90300000100","psid":"MT_1","firmware":"28.43.1014",` +
		`"ports":[{"port":1,"guid":"0x0002c90300000101","link_layer":"InfiniBand"}]}]}}}`
	b, err := upgradeVerdict([]byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	var v attest.Verdict
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	h := v.Facts.Statement.HCAs[0]
	if !v.OK || h.Firmware.Running != "28.43.1014" || h.PSID != "MT_1" || v.Facts.Boot.Clock != 1<<64-1 || v.Facts.Boot.Reset != 3 {
		t.Errorf("got %+v", v)
	}
	if _, err := upgradeVerdict([]byte(`{"facts":`)); err == nil {
		t.Error("broken JSON was lifted")
	}
	if _, err := upgradeVerdict([]byte(`{"ok":false,"facts":{"host":"a"}}`)); err != nil {
		t.Errorf("a verdict without statement: %v", err)
	}
}

// TestUpgradeConflict: a host that an older service held is held.
func TestUpgradeConflict(t *testing.T) {
	t.Parallel()
	b, err := upgradeConflict([]byte(`{"phase":"awaiting","epoch":9007199254740993,"conflict":{"time":"2026-01-02T03:04:05Z","guid":"0x0002c90300000102","with":"host-2"}}`))
	var r Record
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil || len(r.Conflicts) != 1 || r.Conflicts[0].With != "host-2" || r.Conflicts[0].GUID != 0x0002_c903_0000_0102 || r.Epoch != 1<<53+1 {
		t.Errorf("got %+v, %v", r, err)
	}
	if b, err = upgradeConflict([]byte(`{"phase":"admitted","epoch":1}`)); err != nil || strings.Contains(string(b), "conflict") {
		t.Errorf("got %s, %v", b, err)
	}
	if _, err := upgradeConflict([]byte(`{"phase":`)); err == nil {
		t.Error("broken JSON was lifted")
	}
}
