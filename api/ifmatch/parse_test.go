package ifmatch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/ifmatch"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		header   string
		versions []string
		any, ok  bool
	}{
		{"*", nil, true, true},
		{` * `, nil, true, true},
		{`"7"`, []string{"7"}, false, true},
		{`"6" , "7"`, []string{"6", "7"}, false, true},
		{`W/"6", "7"`, []string{"7"}, false, true},
		{`W/"6"`, []string{}, false, true},
		{`7`, nil, false, false},
		{`"7`, nil, false, false},
		{`"7" "8"`, nil, false, false},
		{`"7",`, nil, false, false},
		{``, nil, false, false},
	} {
		versions, any, ok := ifmatch.Parse(tt.header)
		if diff := cmp.Diff(tt.versions, versions); diff != "" || any != tt.any || ok != tt.ok {
			t.Errorf("%q: %v, %v, %v", tt.header, versions, any, ok)
		}
	}
}
