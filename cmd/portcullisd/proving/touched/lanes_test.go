package touched_test

import (
	"strings"
	"testing"

	"portcullis/cmd/portcullisd/proving/touched"
	"portcullis/fabricsm/proof/reader/readertest"
	"portcullis/fabricsm/sm"
)

// TestLanesThatWereWritten turns quality of service on: the SLtoVL tables that the Subnet Manager writes count as touched, and all are read again.
func TestLanesThatWereWritten(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	old, was := b.stage.View(), b.read(nil, nil)
	policy := b.stage.SM.Policy()
	for _, option := range []string{"qos TRUE", "qos_sl2vl 1,0,3,2,5,4,7,6,0,0,0,0,0,0,0,15"} {
		name, value, _ := strings.Cut(option, " ")
		if known, err := policy.QoS.Set(name, value); !known || err != nil {
			t.Fatalf("%s: %v", option, err)
		}
	}
	b.stage.Step(&sm.PolicySet{Policy: policy})
	b.settle()
	all := b.read(nil, nil)
	differ := 0
	for i := range all.Lanes {
		if all.Lanes[i] != was.Lanes[i] {
			differ++
		}
	}
	if differ != len(all.Lanes) || differ == 0 {
		t.Errorf("the Subnet Manager wrote %d of %d tables that are read: the test shows less than it should", differ, len(all.Lanes))
	}
	for _, line := range readertest.Differences(b.read(was, touched.Since(old, b.stage.View())), all) {
		t.Error(line)
	}
}
