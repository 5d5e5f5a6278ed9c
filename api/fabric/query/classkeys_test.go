package query

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keymgr"
)

// Ages of classes grow after they were taken, and a release has ended when that of
// all kinds has.
func TestAddClasses(t *testing.T) {
	then := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := then.Add(time.Hour)
	classes := []keymgr.ClassStatus{{Kind: keys.N2NKey, Enable: sm.KeyEnabled, Settled: 5, Absent: 2, Single: 1}}
	row := v1.ClassKeys{Kind: "n2n_key", Enable: "enable", Settled: 5, Absent: 2, Single: 1}
	aged := row
	aged.Old, aged.Oldest = 2, 3*3600
	for _, tt := range []struct {
		name   string
		status *keymgr.Status
		m      bool // M_Keys were given back
		want   v1.FabricKeys
	}{
		{"none", nil, true, v1.FabricKeys{Released: true}},
		{"enabled", &keymgr.Status{Classes: classes}, false, v1.FabricKeys{Classes: []v1.ClassKeys{row}}},
		{"old ones", &keymgr.Status{Classes: classes, AgesAt: then, Ages: []keys.Age{
			{Kind: keys.N2NKey, Age: time.Hour}, {Kind: keys.N2NNodeKey, Age: 2 * time.Hour}, {Kind: keys.VSKey, Age: 9 * time.Hour},
		}}, false, v1.FabricKeys{Classes: []v1.ClassKeys{aged}}},
		{"M_Keys given back", &keymgr.Status{Releasing: true}, true, v1.FabricKeys{}},
		{"all given back", &keymgr.Status{Releasing: true, Released: true, Kept: 3}, true, v1.FabricKeys{Released: true, Kept: 3}},
		{"classes given back", &keymgr.Status{Releasing: true, Released: true}, false, v1.FabricKeys{}},
	} {
		got := v1.FabricKeys{Released: tt.m}
		addClasses(&got, tt.status, now)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
