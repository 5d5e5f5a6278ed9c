package config

import (
	"slices"
	"strings"
	"testing"
)

func TestRequiredReasonsAreChecked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"take-away, approve, change", ""},
		{"takeaway", `api.require_reason.0: "takeaway": want approve, take-away, change`},
		{"take-away, take-away", "api.require_reason.1: take-away is there twice"},
	} {
		c, err := Parse("/etc/p/c.yaml", []byte("api:\n  require_reason: ["+tt.in+"]\n"))
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), "/etc/p/c.yaml:2: "+tt.want) {
				t.Errorf("%s: %v, want line 2 and %q", tt.in, err, tt.want)
			}
			continue
		}
		if got := strings.Join(c.API.RequireReason, ", "); err != nil || got != tt.in {
			t.Errorf("%s: %q, %v", tt.in, got, err)
		}
	}
	if got := Default().API.RequireReason; !slices.Equal(got, nil) {
		t.Errorf("by default reasons are demanded: %q", got)
	}
}
