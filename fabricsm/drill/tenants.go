package drill

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
)

// Two tenants with two hosts each, on different leaf switches.
const (
	KeyA ib.PKey = 0x8001
	KeyB ib.PKey = 0x8002
	KeyC ib.PKey = 0x8003
)

func TwoTenants() []Tenant {
	return []Tenant{{"A", KeyA, []string{"h1", "h5"}}, {"B", KeyB, []string{"h2", "h6"}}}
}

// SAKey is the SA_Key of sites. It is no secret: nothing real has it.
var SAKey = ib.NewSAKey(0x8F3AC91D27B6E504)

// Administered is a site of two tenants where subnet administration answers hosts, as
// strictly as it does when nothing is configured.
func Administered() SiteOptions {
	cfg := sa.DefaultConfig()
	cfg.Key = SAKey
	return SiteOptions{Tenants: TwoTenants(), SA: &cfg}
}

// KeyStorage is the P_Key of a partition that tenants share.
const KeyStorage ib.PKey = 0x8009
