package movein

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// What "portcullisd observe -o json" wrote becomes a list of ports, and what cannot be kept is named.
func TestPlanOf(t *testing.T) {
	t.Parallel()
	const report = `{"noticed": true, "foreign_p_keys": [
	{"where": {"device": "h1", "node_guid": "0x100", "port": 1, "port_guid": "0x101", "behind": "leaf", "behind_guid": "0x10", "behind_port": 3}, "index": 1, "p_key": "0x0101"},
	{"where": {"device": "h1", "node_guid": "0x100", "port": 1, "port_guid": "0x101", "behind": "leaf", "behind_guid": "0x10", "behind_port": 3}, "index": 2, "p_key": "0x8101"},
	{"where": {"device": "h1", "node_guid": "0x100", "port": 1, "port_guid": "0x101", "behind": "leaf", "behind_guid": "0x10", "behind_port": 3}, "index": 3, "p_key": "0x0102"},
	{"where": {"device": "h2", "node_guid": "0x200", "port": 1, "port_guid": "0x201"}, "index": 1, "p_key": "0x8101"}]}`
	var o observation
	if err := json.Unmarshal([]byte(report), &o); err != nil {
		t.Fatal(err)
	}
	got := planOf(&o)
	want := []v1.AdoptedPort{{GUID: 0x101, Place: ib.Place{Switch: 0x10, Port: 3}, PKeys: []ib.PKey{0x8101, 0x0102}, Device: "h1"}}
	if d := cmp.Diff(want, got.Ports); d != "" {
		t.Errorf("ports (-want +got):\n%s", d)
	}
	if len(got.LeftOut) != 2 || got.memberships() != 2 {
		t.Errorf("%d memberships, left out %q", got.memberships(), got.LeftOut)
	}
}
