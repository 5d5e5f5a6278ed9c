package version

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestCommit(t *testing.T) {
	const revision = "0123456789abcdef0123456789abcdef01234567"
	for _, tt := range []struct {
		name     string
		settings []debug.BuildSetting
		want     string
	}{
		{"no checkout", nil, "devel"},
		{"clean", []debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "false"}}, "0123456789ab"},
		{"changed", []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: revision}}, "0123456789ab-dirty"},
		{"short revision", []debug.BuildSetting{{Key: "vcs.revision", Value: "01"}}, "01"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := commit(tt.settings); got != tt.want {
				t.Errorf("commit = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestStringBeginsWithShort(t *testing.T) {
	if s := String(); !strings.HasPrefix(s, Short()+" (go") || strings.ContainsAny(s, "\n\t") {
		t.Errorf("String = %q, want one line that begins with %q", s, Short())
	}
}
