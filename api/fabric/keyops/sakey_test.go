package keyops_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"portcullis/api/fabric/keyops"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
)

// TestSAKeyIsAudited: the sealed SA_Key, and nothing else, is given out after that is in
// the audit log; without the log, and without a key, nothing is.
func TestSAKeyIsAudited(t *testing.T) {
	facts := []sm.Fact{
		{Kind: sm.FactVault, Sealed: "vault"},
		{Kind: sm.KeyFact(keys.MKey), GUID: 7, Sealed: "another"},
		{Kind: sm.KeyFact(keys.SAKey), Sealed: "the one"},
	}
	var noted []string
	var refuse error
	ops := &keyops.Ops{
		Log: slog.New(slog.DiscardHandler), Sealed: func() ([]sm.Fact, error) { return facts, nil },
		Note: func(_ context.Context, actor, action, object, code string) error {
			noted = append(noted, actor+" "+action+" "+object+" "+code)
			return refuse
		},
	}
	got, err := ops.LendSAKey(t.Context(), "olga", v1.SAKeyLoan{To: "saquery"})
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(got.Facts, "\n"); len(got.Facts) != 2 || !strings.Contains(all, "the one") || strings.Contains(all, "another") {
		t.Errorf("given out: %s", all)
	}
	if len(noted) != 1 || noted[0] != "olga fabric.keys.sa_key fabric/keys/sa_key saquery" {
		t.Errorf("audited: %q", noted)
	}
	refuse = errors.New("the log is full")
	if got, err := ops.LendSAKey(t.Context(), "olga", v1.SAKeyLoan{}); err == nil || got != nil {
		t.Errorf("without a record in the audit log it is given out: %v", got)
	}
	refuse, facts = nil, facts[:2]
	_, err = ops.LendSAKey(t.Context(), "olga", v1.SAKeyLoan{})
	if e, ok := errors.AsType[*refusal.Error](err); !ok || e.Code != "sa_key_unmanaged" {
		t.Errorf("without an SA_Key: %v", err)
	}
}
