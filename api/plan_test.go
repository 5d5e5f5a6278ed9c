package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "portcullis/api/v1"
)

// TestPlanOfManyHosts: a plan may name forty thousand hosts. One with more values than a whole site has is refused, and so is any
// other request that has as many.
func TestPlanOfManyHosts(t *testing.T) {
	t.Parallel()
	f := newLabelFixture(t)
	hosts := make([]string, 40_000)
	for i := range hosts {
		hosts[i] = fmt.Sprintf("gpu-%05d", i)
	}
	body, err := json.Marshal(v1.Wanted{Assignments: []v1.WantedAssignment{{Cluster: "train", Hosts: hosts}}})
	fatal(t, err)
	var p v1.Plan
	w := f.do("POST", "/v1/plan", f.viewer, string(body))
	f.want(t, w, 200)
	fatal(t, json.Unmarshal(w.Body.Bytes(), &p))
	if len(p.Conflicts) == 0 || len(p.Changes) != 0 {
		t.Errorf("hosts that are not in inventory: %d conflicts, %d changes", len(p.Conflicts), len(p.Changes))
	}
	zeros := func(n int) string { return "[" + strings.Join(slices.Repeat([]string{"0"}, n), ",") + "]" }
	for _, r := range []struct{ path, token, body string }{
		{"/v1/plan", f.viewer, `{"tenants":` + zeros(1<<18) + `}`},
		{"/v1/tenants", f.operator, `{"name":"many","p_keys":` + zeros(5_000) + `}`},
	} {
		if w := f.do("POST", r.path, r.token, r.body); w.Code != 400 || !strings.Contains(w.Body.String(), "more values") {
			t.Errorf("%s: status %d, %.300s", r.path, w.Code, w.Body)
		}
	}
}
