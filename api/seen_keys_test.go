package api_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"portcullis/api"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// keyHolder records the calls that it receives.
type keyHolder struct {
	marker
	said []string
}

func (k *keyHolder) ReleaseKeys(_ context.Context, actor string, r v1.KeyRelease) (*v1.FabricKeys, error) {
	what := "release"
	if r.Resume {
		what = "resume"
	}
	k.said = append(k.said, actor+" "+what)
	return &v1.FabricKeys{Managed: true}, nil
}

func (k *keyHolder) MoveKey(_ context.Context, actor string, m v1.KeyMove) (*v1.FabricKey, error) {
	k.said = append(k.said, actor+" move "+m.GUID.String()+" "+m.To)
	return &v1.FabricKey{GUID: m.GUID}, nil
}

func (k *keyHolder) SealedKeys(_ context.Context, actor string) (*v1.SealedKeys, error) {
	k.said = append(k.said, actor+" sealed")
	return &v1.SealedKeys{Facts: []string{}}, nil
}

func (k *keyHolder) LendKey(_ context.Context, actor string, l v1.KeyLoan) (*v1.LentKey, error) {
	k.said = append(k.said, fmt.Sprintf("%s lend %v for %d s to %s", actor, l.GUID, l.Seconds, l.To))
	return &v1.LentKey{Facts: []string{}}, nil
}

func (k *keyHolder) LendSAKey(_ context.Context, actor string, l v1.SAKeyLoan) (*v1.SealedKeys, error) {
	k.said = append(k.said, actor+" SA_Key to "+l.To)
	return &v1.SealedKeys{Facts: []string{}}, nil
}

func (k *keyHolder) RetireKeys(_ context.Context, actor string, r v1.KeyRetirement) (*v1.FabricKeys, error) {
	k.said = append(k.said, actor+" retire "+r.GUID.String())
	return &v1.FabricKeys{Managed: true}, nil
}

func (k *keyHolder) RecordRehearsal(_ context.Context, actor string, r v1.KeyRehearsal) (*v1.KeyRehearsed, error) {
	k.said = append(k.said, actor+" rehearsal of "+r.Fabric)
	return &v1.KeyRehearsed{Keys: r.Keys}, nil
}

// TestKeysAreForOperators: a request that changes which devices have keys, or shows keys sealed, takes the role operator
// and carries the name of its caller.
func TestKeysAreForOperators(t *testing.T) {
	o, k, seal := observer(t), &keyHolder{}, strings.Repeat("a", 64)
	f := newFixture(t, func(opt *api.Options) { opt.Fabric, opt.Operator = o, k })
	for _, r := range []struct{ path, body string }{
		{"/v1/fabric/keys/release", `{}`},
		{"/v1/fabric/keys/release", `{"resume":true}`},
		{"/v1/fabric/keys/move", `{"guid":"` + ib.GUID(2).String() + `","to":"leaf1/7"}`},
		{"/v1/fabric/keys/sealed", ``},
		{"/v1/fabric/keys/lend", `{"guid":"` + ib.GUID(2).String() + `","seconds":600,"to":"bob"}`},
		{"/v1/fabric/keys/sa-key", `{"to":"saquery"}`},
		{"/v1/fabric/keys/retire", `{"guid":"` + ib.GUID(3).String() + `"}`},
		{"/v1/fabric/keys/rehearsal", `{"fabric":"f","kit_made":"2026-01-01T00:00:00Z","listed":"2026-01-02T00:00:00Z","keys":1,"devices":1,"list":"` + seal + `","seal":"` + seal + `"}`},
	} {
		wantProblem(t, f.do("POST", r.path, "", r.body), 401, v1.CodeUnauthenticated)
		wantProblem(t, f.do("POST", r.path, f.viewer, r.body), 403, v1.CodeForbidden)
		if w := f.do("POST", r.path, f.operator, r.body); w.Code != 200 {
			t.Errorf("POST %s: %d %s", r.path, w.Code, w.Body)
		}
	}
	if got, want := strings.Join(k.said, ", "), "olga release, olga resume, olga move 0x0000000000000002 leaf1/7, olga sealed, olga lend 0x0000000000000002 for 600 s to bob, olga SA_Key to saquery, olga retire 0x0000000000000003, olga rehearsal of f"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	for path, want := range map[string]string{"/v1/fabric/keys": `"managed":false`, "/v1/fabric/keys/devices": `"items":[]`} {
		if w := f.do("GET", path, f.viewer, ""); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
		}
	}
}
