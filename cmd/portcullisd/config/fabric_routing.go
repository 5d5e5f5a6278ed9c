package config

import (
	"fmt"
	"io"
	"os"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/enginelist"
	"portcullis/fabricsm/sm"
)

// Routing sets which routing engines are tried, and their options.
type Routing struct {
	Engine       string `yaml:"engine"`
	MaxLanes     int    `yaml:"max_lanes"`
	RootGUIDFile string `yaml:"root_guid_file"`
	CNGUIDFile   string `yaml:"cn_guid_file"`
	IOGUIDFile   string `yaml:"io_guid_file"`
	IDsGUIDFile  string `yaml:"ids_guid_file"`
	MaxReverse   int    `yaml:"max_reverse_hops"`
	PortOrder    string `yaml:"port_search_ordering_file"`
	TorusConfig  string `yaml:"torus_config"`
	GroupFile    string `yaml:"group_file"`
	LFTsFile     string `yaml:"lfts_file"`
	OrderFile    string `yaml:"guid_routing_order_file"`
	WeightsFile  string `yaml:"hop_weights_file"`
	IgnoreFile   string `yaml:"ignore_guids_file"`
}

func defaultRouting() Routing {
	return Routing{Engine: enginelist.Default, MaxLanes: route.MaxLayers, MaxReverse: -1}
}

func (r *Routing) check(k *checker, key string) {
	if err := enginelist.Check(r.Engine); err != nil {
		k.wrong(key+".engine", "%q: %v", r.Engine, err)
	}
	within(k, key+".max_lanes", r.MaxLanes, 1, route.MaxLayers)
	within(k, key+".max_reverse_hops", r.MaxReverse, -1, 64)
}

func (r *Routing) flags(f *smFlags, key string) {
	f.text("engine", key+".engine", &r.Engine)
	number(f, "max-lanes", key+".max_lanes", &r.MaxLanes)
	f.text("root-guid-file", key+".root_guid_file", &r.RootGUIDFile)
	f.text("cn-guid-file", key+".cn_guid_file", &r.CNGUIDFile)
	f.text("io-guid-file", key+".io_guid_file", &r.IOGUIDFile)
	f.text("ids-guid-file", key+".ids_guid_file", &r.IDsGUIDFile)
	number(f, "max-reverse-hops", key+".max_reverse_hops", &r.MaxReverse)
	f.text("port-search-ordering-file", key+".port_search_ordering_file", &r.PortOrder)
	f.text("torus-config", key+".torus_config", &r.TorusConfig)
	f.text("group-file", key+".group_file", &r.GroupFile)
	f.text("lfts-file", key+".lfts_file", &r.LFTsFile)
	f.text("guid-routing-order-file", key+".guid_routing_order_file", &r.OrderFile)
	f.text("hop-weights-file", key+".hop_weights_file", &r.WeightsFile)
	f.text("ignore-guids-file", key+".ignore_guids_file", &r.IgnoreFile)
}

// apply stands behind that of the ports: engines may use no more lanes than
// ports are given.
func (r *Routing) apply(to *sm.Config, path func(string) string) error {
	settings := enginelist.Settings{Lanes: r.MaxLanes, MaxReverseHops: r.MaxReverse}
	if vls := to.Ports.MaxOperationalVLs; vls != 0 {
		settings.Lanes = min(r.MaxLanes, vls.Count())
	}
	files := enginelist.Files{
		Roots: path(r.RootGUIDFile), ComputeNodes: path(r.CNGUIDFile), IONodes: path(r.IOGUIDFile), IDs: path(r.IDsGUIDFile),
		Torus: path(r.TorusConfig), Groups: path(r.GroupFile), LFTs: path(r.LFTsFile), PortOrder: path(r.PortOrder),
		Order: path(r.OrderFile), Weights: path(r.WeightsFile), Ignored: path(r.IgnoreFile),
	}
	if err := settings.Read(files, readList); err != nil {
		return err
	}
	var err error
	to.Engines, err = settings.Engines(r.Engine)
	return err
}

// readList reads a file for a routing engine, and at most one byte more than it
// may have.
func readList(name string, most int) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read the input of routing: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, fmt.Errorf("read the input of routing: %w", err)
	}
	return data, nil
}
