package main

import (
	"net/netip"

	"portcullis/fabricsm/sm"
)

// watchConfig says where the subnet manager can be watched on this machine.
type watchConfig struct {
	Socket  string `yaml:"socket"`
	Metrics string `yaml:"metrics"`
}

func (w *watchConfig) check(k *checker, key string) {
	if w.Metrics == "" {
		return
	}
	if a, err := netip.ParseAddrPort(w.Metrics); err != nil || !a.Addr().IsLoopback() {
		k.wrong(key+".metrics", "%q: want a loopback address with a port, such as 127.0.0.1:9315, as nobody is asked who he is", w.Metrics)
	}
}

func (w *watchConfig) flags(f *smFlags, key string) {
	f.text("socket", key+".socket", &w.Socket)
	f.text("metrics", key+".metrics", &w.Metrics)
}

func (*watchConfig) apply(*sm.Config, func(string) string) error { return nil }
