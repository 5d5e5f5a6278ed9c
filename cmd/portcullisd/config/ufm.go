package config

import (
	"fmt"
	"slices"
	"strings"

	"portcullis/api/rules"
	"portcullis/api/ufm"
)

// API says what is served beside our own API.
type API struct {
	Web bool `yaml:"web"` // pages for browsers
	UFM bool `yaml:"ufm"`

	RequireReason []string `yaml:"require_reason"` // classes of operations that are refused without a reason
}

func (k *checker) api(a *API) {
	for n, class := range a.RequireReason {
		key := fmt.Sprintf("api.require_reason.%d", n)
		switch {
		case !slices.Contains(rules.Classes(), class):
			k.wrong(key, "%.64q: want %s", class, strings.Join(rules.Classes(), ", "))
		case slices.Contains(a.RequireReason[:n], class):
			k.wrong(key, "%s is there twice", class)
		}
	}
}

// UFM returns what the surface of UFM says of the fabric, nil where it is not served.
func (c *Config) UFM() *ufm.Settings {
	if !c.API.UFM {
		return nil
	}
	ports, keys := &c.Fabric.Ports, &c.Fabric.Keys
	return &ufm.Settings{
		Prefix: uint64(ports.Prefix), MTU: ports.MaxMTU, IPoIB: c.Fabric.SA.Enabled && c.Fabric.SA.IPoIB,
		Managed: keys.ManagesMKeys() && keys.MKey != keyDisable,
	}
}
