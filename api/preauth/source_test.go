package preauth

import "testing"

func TestSourceOf(t *testing.T) {
	for _, tt := range []struct{ remote, want string }{
		{"192.0.2.1:4711", "192.0.2.1"},
		{"[::ffff:192.0.2.1]:4711", "192.0.2.1"},
		{"[2001:db8:1:2:3:4:5:6]:4711", "2001:db8:1:2::"},
		{"[fe80::1%eth0]:4711", "fe80::"},
		{"@", "invalid IP"},
		{"", "invalid IP"},
	} {
		if got := SourceOf(tt.remote).String(); got != tt.want {
			t.Errorf("SourceOf(%q) = %s, want %s", tt.remote, got, tt.want)
		}
	}
}
