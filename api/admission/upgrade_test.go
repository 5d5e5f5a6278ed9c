package admission

import (
	"encoding/json"
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
