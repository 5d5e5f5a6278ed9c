package query_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/fabric/query"
	"portcullis/api/fabric/query/seentest"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm/health"
)

const leaf1 = ib.GUID(0x0010000100000001)

// sick was shown seentest.Tree with places that are unhealthy or marked, one of
// them at a switch that is not seen.
func sick(t *testing.T) *query.Observer {
	t.Helper()
	v := *seentest.Run(t, seentest.Tree, seentest.Grants(), nil).Settled()
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v.Health = []health.State{
		{Place: ib.Place{Switch: 0x99}, Mark: health.MarkUnhealthy, Unhealthy: true, Condition: health.Marked, Action: health.Isolate, Reason: "burnt", Since: since},
		{Place: ib.Place{Switch: leaf1, Port: 2}, GUID: 0x20, Unhealthy: true, Condition: health.Flapping, Action: health.Isolate, Reason: "12 times in 1m0s", Since: since, Until: since.Add(time.Minute)},
		{Place: ib.Place{Switch: leaf1, Port: 7}, Mark: health.MarkHealthy, Since: since},
	}
	o := query.New(query.Options{})
	o.OnView(&v)
	return o
}

func TestHealthInPages(t *testing.T) {
	o := sick(t)
	var got []string
	after := ""
	for range 5 {
		page, err := o.Health(t.Context(), v1.PageQuery{After: after, Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range page.Items {
			got = append(got, fmt.Sprintf("%s %v unhealthy %v %s/%s/%s %s until %v", h.At, h.Place, h.Unhealthy, h.Condition, h.Action, h.Mark, h.Reason, h.Until.Sub(h.Since) == time.Minute))
		}
		if after = page.Next; after == "" {
			break
		}
	}
	want := []string{
		"0x0000000000000099 0x0000000000000099/0 unhealthy true marked/isolate/unhealthy burnt until false",
		"leaf1/2 0x0010000100000001/2 unhealthy true flapping/isolate/ 12 times in 1m0s until true",
		"leaf1/7 0x0010000100000001/7 unhealthy false //healthy  until false",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if row, ok, err := o.HealthAt(ib.Place{Switch: leaf1, Port: 1}); ok || err != nil || row.At != "leaf1/1" {
		t.Errorf("a healthy place: %+v, %v, %v", row, ok, err)
	}
}

func TestPlaceOf(t *testing.T) {
	o := sick(t)
	for _, tt := range []struct{ word, want, err string }{
		{word: "leaf1/7", want: "0x0010000100000001/7"},
		{word: "0x0010000100000001/2", want: "0x0010000100000001/2"},
		{word: "leaf1", want: "0x0010000100000001/0"},
		{word: "leaf1/0", want: "0x0010000100000001/0"},
		{word: "h1 mlx5_0", want: "0x0010000100000001/2"},
		{word: "h1 mlx5_0/1", want: "0x0010000100000001/2"},
		{word: "0x99", want: "0x0000000000000099/0"},
		{word: "0x98", err: `no node "0x98"`},
		{word: "0x99/3", err: `no node "0x99"`},
		{word: "leaf1/9", err: "has 8 ports"},
		{word: "leaf1/x", err: "want SWITCH/PORT"},
		{word: "h1 mlx5_0/2", err: "has 1 ports"},
		{word: "", err: "no node"},
	} {
		pl, err := o.PlaceOf(tt.word)
		text := ""
		if err != nil {
			text = fmt.Sprintf("%+v", err)
		}
		if tt.err == "" && (err != nil || pl.String() != tt.want) || tt.err != "" && (err == nil || !strings.Contains(text+hintOf(err), tt.err)) {
			t.Errorf("%q: %v, %v; want %s%s", tt.word, pl, err, tt.want, tt.err)
		}
	}
}

func hintOf(err error) string {
	if e, ok := errors.AsType[*refusal.Error](err); ok {
		return e.Hint
	}
	return ""
}

// TestUnhealthyMetric: places are counted by why they are unhealthy.
func TestUnhealthyMetric(t *testing.T) {
	got := gather(t, sick(t))["portcullis_fabric_unhealthy"]
	want := []map[string]string{{"condition": "flapping", "action": "isolate"}, {"condition": "marked", "action": "isolate"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
