package refusal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"portcullis/api/page"
	"portcullis/api/store"
	"portcullis/attest"
)

// TestExplain: errors that the caller can understand stay as they are, and those of the store become refusals that name
// their cause.
func TestExplain(t *testing.T) {
	for _, kept := range []error{
		nil, New(NotFound, "host_unknown", "", "no host %q", "h"), fmt.Errorf("host h: %w", New(Conflict, "host_held", "", "held")),
		&attest.Refusal{Code: attest.ReasonSession}, page.ErrCursor, context.Canceled, fmt.Errorf("get: %w", context.DeadlineExceeded),
	} {
		if got := Explain(kept); got != kept { //nolint:errorlint // the same error is wanted, not one that wraps it
			t.Errorf("Explain(%v) = %v, want it unchanged", kept, got)
		}
	}
	lost := errors.New("connection refused")
	for _, tt := range []struct {
		err  error
		code string
	}{
		{fmt.Errorf("commit: %w", store.ErrConflict), "busy"},
		{lost, "store_unavailable"},
	} {
		e, ok := errors.AsType[*Error](Explain(tt.err))
		if !ok || e.Code != tt.code || e.Status != Unavailable || e.Hint == "" || !errors.Is(e, tt.err) {
			t.Errorf("Explain(%v) = %#v, want code %s with a hint and the cause", tt.err, e, tt.code)
		}
	}
}

// TestKinds: IsKind finds a wrapped refusal, and each kind has words of its own.
func TestKinds(t *testing.T) {
	err := fmt.Errorf("assign: %w", New(Limited, "rate_limited", "wait", "too many"))
	if !IsKind(err, Limited) || IsKind(err, Conflict) || IsKind(errors.New("no refusal"), Internal) {
		t.Errorf("IsKind does not tell the kind of %v", err)
	}
	words := map[string]Kind{}
	for k := Internal; k <= Changed; k++ {
		if other, twice := words[k.String()]; twice {
			t.Errorf("kinds %d and %d are both %q", other, k, k)
		}
		words[k.String()] = k
	}
}

// TestText: problems stand below the detail, and long texts and lists are cut.
func TestText(t *testing.T) {
	e := New(Invalid, "inventory_invalid", "correct them", "2 problems")
	e.Problems = []string{"a:1: x", "a:2: y"}
	if got, want := e.Error(), "2 problems:\na:1: x\na:2: y"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if got := Clip(strings.Repeat("a", 65)); got != strings.Repeat("a", 64)+"..." {
		t.Errorf("Clip of 65 bytes = %q", got)
	}
	if got := ClipTo("aé", 2); got != "a..." { // a rune that is cut is left out
		t.Errorf("ClipTo = %q, want a...", got)
	}
	if got, want := Some([]string{"a", "b", "c", "d", "e", "f", "g"}), "a, b, c, d, e and 2 more"; got != want {
		t.Errorf("Some = %q, want %q", got, want)
	}
	if got, want := Some([]string{"a", "b"}), "a, b"; got != want {
		t.Errorf("Some = %q, want %q", got, want)
	}
}
