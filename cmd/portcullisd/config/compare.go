package config

import (
	"reflect"
	"slices"
	"strings"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm"
)

// liveKey reports a key of the configuration that may change while the service
// runs.
func liveKey(key string) bool {
	if key == "fabric.ports.lmc_port0" {
		return false
	}
	for _, live := range []string{"fabric.ports.", "fabric.qos.", "fabric.health.", "fabric.routing.", "fabric.topology.", "fabric.sa.sa_", "fabric.sa.limits."} {
		if strings.HasPrefix(key, live) {
			return true
		}
	}
	return slices.Contains([]string{
		"client_certificates", "fabric.election.allowed_sms", "fabric.sa.service_name2key_map_file", "fabric.sa.prefix_routes_file", "fabric.sa.options",
		"fabric.sa.alias_guids_file", "fabric.sa.ipoib", "fabric.sa.ipoib_mtu",
	}, key)
}

// changedKeys returns the keys whose values differ between two structs of one type.
func changedKeys(prefix string, a, b reflect.Value) (keys []string) {
	named := false
	for f, v := range a.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if name == "" {
			continue
		}
		named = true
		other := b.FieldByIndex(f.Index)
		if v.Kind() == reflect.Struct {
			if below := changedKeys(prefix+name+".", v, other); below != nil {
				keys = append(keys, below...)
				continue
			}
		}
		if v.Kind() != reflect.Struct || !hasKeys(v.Type()) {
			if !reflect.DeepEqual(v.Interface(), other.Interface()) {
				keys = append(keys, prefix+name)
			}
		}
	}
	if !named {
		return nil
	}
	return keys
}

func hasKeys(t reflect.Type) bool {
	for f := range t.Fields() {
		if f.Tag.Get("yaml") != "" {
			return true
		}
	}
	return false
}

// Change is what a configuration that was read again changes.
type Change struct {
	Policy  sm.Policy
	engines []route.Engine // in force from now on
	Live    []string       // keys that are in force from now on
	Restart []string       // keys that are not
}

// Compare finds what to change. Files that engines read may have changed without
// any key; those of quality of service are in what was made of them.
func Compare[T any](prefix string, was, now *T, core, next *sm.Config) (r Change) {
	for _, key := range changedKeys(prefix, reflect.ValueOf(was).Elem(), reflect.ValueOf(now).Elem()) {
		if liveKey(key) {
			r.Live = append(r.Live, key)
		} else {
			r.Restart = append(r.Restart, key)
		}
	}
	r.Policy, r.engines = next.Policy(), next.Engines
	if reflect.DeepEqual(core.Engines, next.Engines) {
		r.Policy.Engines = nil
	} else if r.engines == nil {
		r.Policy.Engines = sm.DefaultConfig().Engines
	}
	return r
}

// WithPolicy returns a configuration with another policy.
func WithPolicy(c sm.Config, r *Change) sm.Config {
	p := &r.Policy
	lmc := c.Ports.LMCPort0
	c.Ports, c.QoS, c.Health, c.Election.Allowed, c.Engines = p.Ports, p.QoS, p.Health, p.Allowed, r.engines
	c.Ports.LMCPort0 = lmc
	return c
}
