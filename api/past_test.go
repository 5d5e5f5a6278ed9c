package api_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/credential"
	v1 "portcullis/api/v1"
)

// historian notes whether the last reader may see proofs.
type historian struct{ proofs bool }

func (a *historian) Known(_ context.Context, proofs bool) (*v1.FabricHistory, error) {
	a.proofs = proofs
	return &v1.FabricHistory{Gaps: []v1.FabricGap{}, Marks: []v1.FabricMark{}}, nil
}

func (a *historian) At(_ context.Context, q v1.PastQuery, proofs bool) (*v1.FabricPast, error) {
	a.proofs = proofs
	return &v1.FabricPast{At: q.At, Switches: []v1.PastSwitch{}, Trunks: []v1.PastTrunk{}, Ports: []v1.PastPort{}}, nil
}

func (a *historian) Changes(_ context.Context, _ v1.PastChangeQuery, proofs bool) (*v1.PastChanges, error) {
	a.proofs = proofs
	return &v1.PastChanges{Items: []v1.PastChange{}, Gaps: []v1.FabricGap{}}, nil
}

// TestProofsOfThePast: a credential sees what was proven in the past if it sees what is proven now, and the role tenant sees no past.
func TestProofsOfThePast(t *testing.T) {
	t.Parallel()
	past := &historian{}
	f := newFixture(t, func(o *api.Options) { o.Past = past })
	for _, c := range []struct {
		role, more string
		status     int
		proofs     bool
	}{
		{"viewer", "", http.StatusOK, false},
		{"scheduler", "", http.StatusOK, false},
		{"approver", "", http.StatusOK, false},
		{"operator", "", http.StatusOK, true},
		{"auditor", "", http.StatusOK, true},
		{"operator", ", p_keys: [0x0100-0x01ff]", http.StatusOK, false},
		{"tenant", ", tenants: [acme]", http.StatusForbidden, false},
	} {
		token, digest := credential.New()
		known, err := credential.Parse("tokens.yaml", fmt.Appendf(nil, "tokens:\n- {name: rita, role: %s, sha256: %s%s}\n", c.role, digest, c.more))
		if err != nil {
			t.Fatal(err)
		}
		f.server.SetTokens(known)
		for _, path := range []string{"/v1/fabric/history", "/v1/fabric/history/at?at=" + time.Now().UTC().Format(time.RFC3339), "/v1/fabric/history/changes"} {
			past.proofs = !c.proofs && c.status == http.StatusOK
			answer := f.do(http.MethodGet, path, token, "")
			if answer.Code != c.status || past.proofs != c.proofs {
				t.Errorf("%s%s, %s: status %d, proofs %v, want %d, %v", c.role, c.more, path, answer.Code, past.proofs, c.status, c.proofs)
			}
		}
	}
}
