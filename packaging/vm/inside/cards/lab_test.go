//go:build vm

// Package cards_test runs in a virtual machine. It puts simulated cards behind PCI functions of the kernel, and has the
// vendor's tools and the agent drive them.
package cards_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"portcullis/agent/hca/hcasim"
	"portcullis/agent/hca/sysfs"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig/nvconfigtest"
	"portcullis/packaging/vm/inside/guest"
	"portcullis/packaging/vm/inside/softpci"
)

const (
	node   = ib.GUID(0xb83fd20300123400)
	psid   = "TST0000000001" // of the signed files
	serial = "MT2247X00001"
)

// bench is a card behind a PCI function.
type bench struct {
	*testing.T
	card     *hcasim.Card
	function *softpci.Function
}

// plug puts a card that trusts the test key for settings behind a function, until the end of the test.
func plug(t *testing.T, fwctl bool) bench {
	t.Helper()
	load(t)
	o := hcasim.ConnectX7(node, node)
	o.Identity.PSID = psid
	k := nvconfigtest.Pinned(t, 2048)
	o.Keys = append(o.Keys, hcasim.Key{UUID: k.UUID, Public: k.Public, Signs: hcasim.SignsOEM})
	c := hcasim.New(o)
	config := softpci.ConnectX7(serial)
	config.FWCTL = fwctl
	f, err := softpci.Attach(config, c.RPC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if guest.Exists("/sys/bus/pci/devices/" + string(f.Address)) {
			t.Errorf("%s is still there after the card was pulled", f.Address)
		}
	})
	return bench{t, c, f}
}

// load loads the module, and mounts the kernel's files where the newest tools see them.
func load(t *testing.T) {
	t.Helper()
	if guest.Exists("/sys/module/softpci") {
		return
	}
	guest.Do(t, "insmod", "/suite/softpci.ko")
	for _, dir := range []string{"/sys", "/proc", "/dev", "/tmp"} {
		if err := os.MkdirAll("/newest"+dir, 0o755); err != nil {
			t.Fatal(err)
		}
		guest.Do(t, "mount", "--bind", dir, "/newest"+dir)
	}
}

func (b bench) address() string { return string(b.function.Address) }

// older runs a tool of the machine's own release on the card.
func (b bench) older(tool string, args ...string) guest.Ended {
	b.Helper()
	return guest.Try(b.T, "/usr/bin/"+tool, append([]string{"-d", b.address()}, args...)...)
}

// newest runs a tool of the development release on the card.
func (b bench) newest(tool string, args ...string) guest.Ended {
	b.Helper()
	return guest.Try(b.T, "chroot", append([]string{"/newest", "/usr/bin/" + tool, "-d", b.address()}, args...)...)
}

// says fails unless a program ended with a status and printed all texts. Blanks count as one.
func (b bench) says(e guest.Ended, code int, texts ...string) {
	b.Helper()
	all := strings.Join(strings.Fields(e.All), " ")
	for _, text := range texts {
		if !strings.Contains(all, text) {
			b.Errorf("%q is missing in:\n%s", text, e.All)
		}
	}
	if e.Code != code {
		b.Errorf("exit status %d, want %d:\n%s", e.Code, code, e.All)
	}
}

// agentHCA is what "portcullis-agent hca --json" prints, as far as it is looked at here.
type agentHCA struct {
	Lockdown bool `json:"kernel_lockdown"`
	Adapters []struct {
		Name  string        `json:"name"`
		PCI   sysfs.Address `json:"pci_address"`
		Facts []fact        `json:"facts"`
	} `json:"adapters"`
}

type fact struct {
	Fact   string   `json:"fact"`
	Value  string   `json:"value"`
	From   []string `json:"from"`
	Reason string   `json:"unknown"`
	Detail string   `json:"detail"`
}

// facts returns what the agent reads of the card.
func (b bench) facts(args ...string) (h agentHCA, facts map[string]fact) {
	b.Helper()
	e := guest.Try(b.T, "portcullis-agent", append([]string{"hca", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(e.Out), &h); err != nil || len(h.Adapters) != 1 || h.Adapters[0].PCI != b.function.Address {
		b.Fatalf("%v: want adapter %s alone in:\n%s", err, b.address(), e.All)
	}
	facts = map[string]fact{}
	for _, f := range h.Adapters[0].Facts {
		facts[f.Fact] = f
	}
	return h, facts
}
