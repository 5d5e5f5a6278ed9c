package verdict

import (
	"slices"
	"strings"
)

// UFM returns the rows of the options of UFM's gv.cfg that concern the fabric. Most options of that file are about
// UFM's own services, and have no row. Names and meanings are those of the UFM Enterprise user manual.
func UFM() []Option { return slices.Clone(ufmOptions) }

// FindUFM returns the row of an option of gv.cfg; false if none is known.
func FindUFM(name string) (Option, bool) {
	for i := range ufmOptions {
		if strings.EqualFold(ufmOptions[i].Name, name) {
			return ufmOptions[i], true
		}
	}
	return Option{}, false
}

// NearestUFM returns the option of gv.cfg that a name was most likely meant to be, "" if none is near.
func NearestUFM(name string) string { return nearest(ufmOptions, name) }

// UFMTruth returns a truth value of gv.cfg, which has several words for it, as one of opensm.conf; others stay.
func UFMTruth(value string) string {
	switch strings.ToLower(value) {
	case "true", "yes", "on":
		return "TRUE"
	case "false", "no", "off":
		return "FALSE"
	default:
		return value
	}
}

var ufmOptions = []Option{
	{Name: "m_key_per_port", Usual: "FALSE", Class: NotNeeded, Key: "fabric.keys.m_key_enable", Text: "each device has an M_Key of its own; those that devices have now are in guid2mkey"},
	{Name: "global_m_key_seed", Class: NotNeeded, Key: "fabric.keys.import", Secret: true, Text: "it is a seed; the keys that devices have are in guid2mkey"},
	{Name: "randomize_sa_key", Usual: "FALSE", Class: NotNeeded, Key: "fabric.sa.sa_key_update", Text: "the service draws an SA_Key, and the next after the time of the key, where keys are sealed"},
	{Name: "topoconfig_enabled", Usual: "FALSE", Class: Taken, Key: "fabric.topology.mode", Form: Planned},
	{Name: "default_membership", Usual: "limited", Class: Unsafe, Text: "hosts are limited members of the default partition: they reach the manager and not each other"},
	{Name: "gateway_port_partitioning", Usual: "none", Class: Unsupported, Text: "gateways become members of no partition by themselves: name their ports in partitions.conf"},
	{Name: "fabric_interface", Class: Changed, Key: "fabric.port", Text: "the port is named by device and number, as ibstat lists them: --port"},
	{Name: "sharp_enabled", Usual: "FALSE", Class: Unsupported, Text: "no aggregation manager is run; one of its own may register as a service"},
	{Name: "monitoring_mode", Usual: "FALSE", Class: Unsupported, Text: "UFM only watches here, and another manager rules: import the files of that one"},
	{Name: "management_mode", Class: NotNeeded, Text: "how UFM shares work with other managers"},
	{Name: "enable_predefined_groups", Class: NotNeeded, Text: "hosts have groups in the inventory: tenants and clusters"},
	{Name: "multinic_host_enabled", Class: NotNeeded, Text: "the inventory says which adapters a host has"},
	{Name: "mcast_addr", Class: NotNeeded, Text: "no agents of UFM are asked"},
	{Name: "event_plugin_name", Class: Unsupported, Secret: true, Text: "no code is loaded; events are on the API and in metrics: docs/operate/events.md"},
	{Name: "event_plugin_options", Class: NotNeeded, Secret: true, Text: "see event_plugin_name"},
}
