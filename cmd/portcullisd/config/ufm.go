package config

import "portcullis/api/ufm"

// API says what is served beside our own API.
type API struct {
	Web bool `yaml:"web"` // pages for browsers
	UFM bool `yaml:"ufm"`
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
