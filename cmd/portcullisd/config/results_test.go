package config

import (
	"strings"
	"testing"
)

func TestResultsConfig(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ section, says string }{
		{"{root: r}", "belong together"},
		{"{issuer: https://x}", "belong together"},
		{"{root: r, issuer: 'a b'}", "printable"},
		{"{key_life: 1m}", "results.key_life"},
		{"{keylife: 1h}", "keylife"},
		{"{root: r, issuer: https://x, key_life: 0s}", ""},
	} {
		_, err := Parse("portcullisd.yaml", []byte("results: "+tt.section+"\n"))
		if tt.says == "" && err != nil || tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
			t.Errorf("%s: %v, want %q", tt.section, err, tt.says)
		}
	}
}
