package config

import (
	"os"
	"strings"
	"testing"
)

// TestInstanceNames: two processes with one role each on one machine have different names, and
// an address that means all is advertised as the host name.
func TestInstanceNames(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		roles        []Role
		change       func(*Config)
		name, listen string
		advertised   string
	}{
		{roles: []Role{RoleAPI, RoleSM}, name: strings.ToLower(host), listen: "10.0.0.1:8443", advertised: "https://10.0.0.1:8443"},
		{roles: []Role{RoleAPI}, name: strings.ToLower(host) + "-api", listen: "0.0.0.0:8443", advertised: "https://" + host + ":8443"},
		{roles: []Role{RoleSM}, name: strings.ToLower(host) + "-sm", listen: ":8443"},
		{roles: []Role{RoleSM}, change: func(c *Config) { c.Cluster.Name = "a" }, name: "a", listen: ":8443"},
		{roles: []Role{RoleAPI}, change: func(c *Config) { c.Instance, c.Advertise = "b", "https://b.example:1" }, name: "b", listen: ":8443", advertised: "https://b.example:1"},
	} {
		c := Default()
		c.Roles, c.Listen = tt.roles, tt.listen
		if tt.change != nil {
			tt.change(c)
		}
		if name, err := c.InstanceName(); name != tt.name || err != nil {
			t.Errorf("%v: name %q, %v; want %q", tt.roles, name, err, tt.name)
		}
		if got := c.Advertised(); got != tt.advertised {
			t.Errorf("%v: advertised %q, want %q", tt.roles, got, tt.advertised)
		}
	}
}
