package ifmatch_test

import (
	"testing"

	"portcullis/api/ifmatch"
	"portcullis/api/refusal"
)

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name     string
		named    bool
		versions []string
		want     bool
	}{
		{"no header", false, nil, true},
		{"the version", true, []string{"6", "7"}, true},
		{"another version", true, []string{"6"}, false},
		{"an empty list", true, nil, false},
	} {
		ctx := t.Context()
		if tt.named {
			ctx = ifmatch.With(ctx, tt.versions)
		}
		err := ifmatch.Check(ctx, "host", "h", "7", "it is at 7")
		if got := err == nil; got != tt.want || !got && !refusal.IsKind(err, refusal.Changed) {
			t.Errorf("%s: %v, want a match: %v", tt.name, err, tt.want)
		}
	}
}
