package config

import (
	"net/netip"

	"portcullis/fabricsm/sm"
)

// Watch says where the subnet manager can be watched on this machine.
type Watch struct {
	Socket  string `yaml:"socket"`
	Metrics string `yaml:"metrics"`
}

func (w *Watch) check(k *checker, key string) {
	if w.Metrics == "" {
		return
	}
	if a, err := netip.ParseAddrPort(w.Metrics); err != nil || !a.Addr().IsLoopback() {
		k.wrong(key+".metrics", "%q: want a loopback address with a port, such as 127.0.0.1:9315, as clients are not authenticated", w.Metrics)
	}
}

func (w *Watch) flags(f *smFlags, key string) {
	f.text("socket", key+".socket", &w.Socket)
	f.text("metrics", key+".metrics", &w.Metrics)
}

func (*Watch) apply(*sm.Config, func(string) string) error { return nil }
