package config

import (
	"fmt"
	"net"
	"os"
	"strings"

	"portcullis/cmd/portcullisd/command"
)

// Shared reports whether other instances can reach the store of this one. Where none can,
// the lock of the state directory says that this instance is the only one.
func (c *Config) Shared() bool { return c.Cluster.Name != "" || len(c.Etcd.Endpoints) > 0 }

// InstanceName returns the name by which other instances know this one. Two processes with
// one role each on a machine have different ones.
func (c *Config) InstanceName() (string, error) {
	switch {
	case c.Instance != "":
		return c.Instance, nil
	case c.Cluster.Name != "":
		return c.Cluster.Name, nil
	}
	name, err := os.Hostname()
	switch name = strings.ToLower(name); {
	case !c.Has(RoleSM):
		name += "-" + string(RoleAPI)
	case !c.Has(RoleAPI):
		name += "-" + string(RoleSM)
	}
	if err == nil {
		err = CheckMemberName(name)
	}
	if err != nil {
		return "", command.Hint(fmt.Errorf("name this instance: %w", err), "set the key instance to a name that no other instance has")
	}
	return name, nil
}

// Advertised returns where other instances reach the API of this one, "" if nowhere.
func (c *Config) Advertised() string {
	if c.Advertise != "" || !c.Has(RoleAPI) {
		return c.Advertise
	}
	host, port, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return ""
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		if host, err = os.Hostname(); err != nil {
			return ""
		}
	}
	return "https://" + net.JoinHostPort(host, port)
}

// StorePlace says where the records are.
func (c *Config) StorePlace() string {
	if len(c.Etcd.Endpoints) > 0 {
		return "at " + strings.Join(c.Etcd.Endpoints, ", ")
	}
	return "in " + c.Path(c.StateDir)
}
