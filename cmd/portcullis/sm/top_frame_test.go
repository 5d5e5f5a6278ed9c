package sm

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/screen/screentest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// bringUp is a report in the midst of a bring-up, and the one 200 ms before.
func bringUp() *sample {
	at := func(ms int) time.Time { return noon.Add(time.Duration(ms) * time.Millisecond) }
	event := func(ms int, name, level, text string) v1.SMEvent {
		return v1.SMEvent{Time: at(ms), Event: name, Level: level, Text: text}
	}
	now := &v1.SMProgress{
		Observed: at(900), Now: at(1000), Started: at(0), State: "Master", Phase: "forwarding", GUID: 0x1, LID: 4, Priority: 14,
		Revision: 7, Nodes: v1.NodeCounts{Switches: 720, CAs: 5184}, Ports: v1.PortCounts{Cabled: 31104, Active: 10368, Init: 20000, Unread: 736},
		Links: 15552, Routing: v1.RoutingInfo{Engine: "ftree", LIDs: 5904, MaxLID: 5904, Lanes: 1, Seconds: 0.4321}, Busy: true,
		SMPs: []v1.SMPKind{{Method: "Get", Attribute: "PortInfo", Sent: 31104}, {Method: "Set", Attribute: "LinearForwardingTable", Sent: 4000}},
		Sent: 35104, Answered: 35030, Refused: 1, Timeouts: 10, Retries: 8, Out: 64, Window: 64, Blocks: 61000, Behind: 650,
		Queues: []v1.Queue{{Name: "LinearForwardingTable", Len: 650}, {Name: "P_KeyTable", Len: 5000}}, Waiting: 44, Pauses: 2,
		NFaults: 2, Faults: []v1.Fault{{At: "leaf2/2", Text: "nothing answers behind 0x0010000100000002/2 although the link is up"}, {Text: "evil\x1b[2Jname"}},
		Events: []v1.SMEvent{
			event(10, "state-changed", "info", "subnet manager is Discovering: started"),
			event(500, "port-placed", "info", "port a"), event(501, "port-placed", "info", "port b"),
			event(700, "node-unreachable", "warning", "nothing answers behind 0x0010000100000002/2"),
			event(800, "routed", "info", "ftree routes 5904 LIDs over 720 switches"),
		},
	}
	last := event(502, "port-placed", "info", "port z")
	last.Count = 5182
	now.Events = slices.Insert(now.Events, 3, last)
	before := *now
	before.Observed, before.Sent = at(700), 25104
	before.SMPs = []v1.SMPKind{{Method: "Get", Attribute: "PortInfo", Sent: 25104}}
	return &sample{now: now, before: &before, rates: []float64{0, 10_000, 40_000, 50_000}}
}

// settledSample is a fabric at rest.
func settledSample() *sample {
	s := bringUp()
	p := s.now
	p.Phase, p.Settled, p.Busy, p.Blocks, p.Behind, p.Waiting, p.Pauses, p.NFaults = "settled", true, false, 0, 0, 0, 0, 0
	p.Queues, p.Faults, p.Out = nil, nil, 0
	p.Ports = v1.PortCounts{Cabled: 31104, Active: 31104}
	p.Settles = []v1.SettledWork{
		{Time: noon, Cause: "start", SMPs: 101_000, Seconds: 0.87},
		{Time: noon.Add(500 * time.Millisecond), Cause: "trap 128 from LID 5", SMPs: 12, Seconds: 0.0042},
	}
	s.before = p
	return s
}

// TestFrames compares whole screens with those in testdata; "go test -update"
// rewrites them. The first character of a line is its style.
func TestFrames(t *testing.T) {
	lost := settledSample()
	lost.lost = "ask the subnet manager at s.sock: connection refused"
	for _, tt := range []struct {
		name          string
		s             *sample
		width, height int
	}{
		{"bringup-80x24", bringUp(), 80, 24},
		{"bringup-120x40", bringUp(), 120, 40},
		{"bringup-whole", bringUp(), 100, 0},
		{"settled-80x24", settledSample(), 80, 24},
		{"settled-40x12", settledSample(), 40, 12},
		{"lost-80x24", lost, 80, 24},
	} {
		t.Run(tt.name, func(t *testing.T) {
			screentest.Compare(t, filepath.Join("testdata", "top", tt.name+".txt"), frame(tt.s, tt.width, tt.height), tt.width, tt.height)
		})
	}
}

func TestRate(t *testing.T) {
	sent := func(p *v1.SMProgress) uint64 { return p.Sent }
	at := func(ms int, sent uint64) *v1.SMProgress {
		return &v1.SMProgress{Observed: noon.Add(time.Duration(ms) * time.Millisecond), Sent: sent}
	}
	for _, tt := range []struct {
		name        string
		now, before *v1.SMProgress
		want        float64
	}{
		{"first", at(0, 10), nil, 0},
		{"half a second", at(500, 60), at(0, 10), 100},
		{"the same view", at(500, 60), at(500, 60), 0},
		{"started again", at(900, 5), at(500, 60), 0},
	} {
		if got := rate(tt.now, tt.before, sent); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
