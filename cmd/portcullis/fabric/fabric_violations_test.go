package fabric

import (
	"strings"
	"testing"
	"time"

	v1 "portcullis/api/v1"
)

// TestViolationRow: a row says how sure its source is.
func TestViolationRow(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		name string
		v    v1.FabricViolation
		want string
	}{
		{"by way", v1.FabricViolation{Kind: "m-key", Verdict: "confirmed", At: "leaf1/2", By: "way", NamedLID: 9, Host: "c1", Tenant: "acme", ReporterAt: "leaf1", Detail: "Set PortInfo", Count: 7}, "m-key|confirmed|leaf1/2 (by way)|c1|acme|leaf1|Set PortInfo, names LID 9|7"},
		{"by LID", v1.FabricViolation{Kind: "m-key", Verdict: "claimed", At: "leaf1/2", By: "lid", Detail: "Get PortInfo", Count: 1}, "m-key|claimed|leaf1/2 (by LID)||||Get PortInfo|1"},
		{"by port", v1.FabricViolation{Kind: "p-key", Verdict: "claimed", At: "leaf1/2", By: "port", PKey: 0x8002, Detail: "stopped by the switch", Count: 1}, "p-key|claimed|leaf1/2||||0x8002 stopped by the switch|1"},
		{"a LID of nobody", v1.FabricViolation{Kind: "q-key", Verdict: "refuted", LID: 77, Count: 1}, "q-key|refuted|LID 77, of no host|||||1"},
		{"nobody", v1.FabricViolation{Kind: "stray-answer", Verdict: "claimed", Count: 2}, "stray-answer|claimed|unknown|||||2"},
		{"others", v1.FabricViolation{Kind: "m-key", Verdict: "claimed", At: "leaf1/2", Others: true, Count: 9}, "m-key|claimed|leaf1/2||||various|9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.v.First, tt.v.Last = at, at
			row := violationRow(&tt.v)
			if got := strings.Join(row[1:len(row)-1], "|"); got != tt.want || len(row) != len(violationHeader) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
