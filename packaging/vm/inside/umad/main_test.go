//go:build vm

// Package umad_test runs what docs/reference/hardware-test-plan.md wants on Linux's ib_umad, in a machine whose adapters are softhca's.
// Each test has a fabric of its own, into which this machine is cabled with one adapter or several: our Subnet Manager is on
// the first, and Debian's tools, which judge it, come from another node.
package umad_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.list").Value.String() == "" { // which the host asks for
		if err := prepare(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

// prepare loads the adapter's module, and makes what programs expect of a system.
func prepare() error {
	for _, args := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"modprobe", "-a", "ib_umad", "ib_uverbs"},
		{"insmod", "/lib/modules/softhca.ko"},
		{"mkdir", "-p", "/var/cache/opensm", "/var/log", "/var/run", "/etc/opensm"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, out)
		}
	}
	return nil
}
