package api_test

import (
	"context"
	"encoding/json"
	"testing"

	"portcullis/api"
	"portcullis/api/roles"
	v1 "portcullis/api/v1"
)

// busy is a fabric of one link that is loaded, and one of which nothing is known.
type busy struct{ api.FabricReader }

func (busy) Load(_ context.Context, q v1.LoadQuery) (*v1.Page[v1.FabricLoad], error) {
	known := v1.FabricLoad{Node: 0x1000, Num: 1, At: "leaf1/1", State: v1.LoadKnown, Rate: &v1.LinkRate{Share: 0}}
	unknown := v1.FabricLoad{Node: 0x1000, Num: 2, At: "leaf1/2", State: "unread", Trunk: q.Trunks, To: q.Node}
	return &v1.Page[v1.FabricLoad]{Items: []v1.FabricLoad{known, unknown}}, nil
}

// TestLoadOfLinks: who may see the fabric sees the load of its links, and a tenant sees none, its own included. A link that is idle has a
// rate, and one of which nothing is known has none.
func TestLoadOfLinks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, unlimited, func(o *api.Options) { o.Fabric = busy{} })
	tokens := f.tokensOfRoles(t)
	for r, token := range tokens {
		w := f.do("GET", "/v1/fabric/load", token, "")
		if r == roles.Tenant {
			wantProblem(t, w, 403, v1.CodeForbidden)
			continue
		}
		if w.Code != 200 {
			t.Errorf("role %s: status %d, %s", r, w.Code, w.Body)
		}
	}
	wantProblem(t, f.do("GET", "/v1/fabric/load", "", ""), 401, v1.CodeUnauthenticated)
	wantProblem(t, f.do("GET", "/v1/fabric/load?limit=6000", tokens[roles.Viewer], ""), 422, v1.CodeInvalid)
	w := f.do("GET", "/v1/fabric/load?trunks=true&node=leaf1", tokens[roles.Viewer], "")
	var page struct{ Items []map[string]any }
	fatal(t, json.Unmarshal(w.Body.Bytes(), &page))
	if len(page.Items) != 2 {
		t.Fatalf("answered %s", w.Body)
	}
	rate, _ := page.Items[0]["rate"].(map[string]any)
	if share, ok := rate["share"]; !ok || share != 0.0 {
		t.Errorf("an idle link has the rate %v", rate)
	}
	if _, ok := page.Items[1]["rate"]; ok || page.Items[1]["trunk"] != true || page.Items[1]["to"] != "leaf1" {
		t.Errorf("the other link is %v", page.Items[1])
	}
}
