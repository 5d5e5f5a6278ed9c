//go:build vm

// Package selinux_test runs in a virtual machine whose kernel enforces SELinux from the first moment, with Debian's
// reference policy and the module that the agent wrote. It tests which processes the kernel allows to use an adapter, and
// for which purpose.
//
// Programs that are tried in another domain are this test program again, with the variable that [programVariable] names.
package selinux_test

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	name := os.Getenv(programVariable)
	if name == "" {
		os.Exit(m.Run())
	}
	if err := programs[name](os.Args[1:]); err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}
