package caller_test

import (
	"testing"

	"portcullis/api/caller"
)

func TestOf(t *testing.T) {
	if got := caller.Of(t.Context()); got != (caller.Request{}) {
		t.Errorf("without a request: %+v", got)
	}
	for source, want := range map[string]string{"192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::1", "fe80::1%ib0": "fe80::1%ib0", "@": "", "": "", "/run/x.sock": ""} {
		if got := caller.Of(caller.With(t.Context(), "a1", source)); got != (caller.Request{ID: "a1", Source: want}) {
			t.Errorf("source %q: %+v", source, got)
		}
	}
}
