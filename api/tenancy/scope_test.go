package tenancy

import "testing"

// TestRangesCover compares ranges that meet, overlap, leave gaps or are missing.
func TestRangesCover(t *testing.T) {
	for _, tt := range []struct {
		scope, tenant []string
		want          bool
	}{
		{[]string{"0x0100-0x01ff"}, []string{"0x0100-0x01ff"}, true},
		{[]string{"0x0100-0x01ff"}, []string{"0x0180", "0x0110-0x011f"}, true},
		{[]string{"0x0180-0x01ff", "0x0100-0x017f"}, []string{"0x0100-0x01ff"}, true},
		{[]string{"0x0100-0x0190", "0x0150-0x01ff"}, []string{"0x0100-0x01ff"}, true},
		{[]string{"0x0100-0x017e", "0x0180-0x01ff"}, []string{"0x0100-0x01ff"}, false},
		{[]string{"0x0100-0x01ff"}, []string{"0x00ff-0x0100"}, false},
		{[]string{"0x0100-0x01ff"}, []string{"0x01ff-0x0200"}, false},
		{[]string{"0x0100-0x01ff"}, []string{"0x0100", "0x0001"}, false},
		{[]string{"0x0001-0x7ffe"}, []string{"0x7ffe"}, true},
		{[]string{"0x0100-0x01ff"}, nil, false},
		{nil, []string{"0x0100"}, false},
		{nil, nil, false},
	} {
		scope, err := parseRanges(tt.scope)
		if err != nil {
			t.Fatal(err)
		}
		tenant, err := parseRanges(tt.tenant)
		if err != nil {
			t.Fatal(err)
		}
		if got := scope.cover(tenant); got != tt.want {
			t.Errorf("%v covers %v: %v, want %v", scope, tenant, got, tt.want)
		}
	}
}
