package identity

import (
	"testing"

	v1 "portcullis/api/v1"
)

func TestScope(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]v1.Scope{
		"everything":                            {},
		"tenants acme zeta":                     {Tenants: []string{"acme", "zeta"}},
		"P_Keys 0x0100-0x01ff; hosts gpu-* n01": {PKeys: []string{"0x0100-0x01ff"}, Hosts: []string{"gpu-*", "n01"}},
	} {
		if got := scope(&s); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
