package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/packaging/testenv"
)

// TestSMBroadcastGroups: a partition with the flag ipoib has its broadcast group, which
// saquery shows; SIGHUP makes and ends them.
func TestSMBroadcastGroups(t *testing.T) {
	t.Parallel()
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	file := filepath.Join(t.TempDir(), "partitions.conf")
	write(t, file, "Default=0x7fff, ipoib : ALL=limited, SELF=full;\nA=0x101 : 0x200001=full;\n")
	d := launch(t, exec.Command("portcullisd", "sm", "--port", "ibsim:"+lab.Socket()+"/sm", "--partitions", file,
		"--enforcement", "accepted", "--sa-enhanced-trust-model=false"))
	ibsimtest.Need(t, "saquery")
	testenv.Program(t, "gcc")
	pre, err := satest.BuildPreload(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	groups := func() string {
		cmd, err := lab.Client().Command(t.Context(), "h1", "saquery", "-g")
		if err != nil {
			t.Fatal(err)
		}
		pre.Apply(cmd)
		out, err := cmd.CombinedOutput()
		if err != nil {
			return err.Error() + ": " + string(out)
		}
		return string(out)
	}
	eventually(t, "a settled fabric", func() (bool, string) {
		said := d.lines.String()
		return strings.Contains(said, "settled"), said
	})
	eventually(t, "the broadcast group of the default partition", func() (bool, string) {
		said := groups()
		return strings.Contains(said, "ff12:401b:ffff::ffff:ffff"), said
	})
	if said := groups(); strings.Count(said, "MGID") != 1 {
		t.Errorf("other groups are there:\n%s", said)
	}
	write(t, file, "Default=0x7fff : ALL=limited, SELF=full;\nA=0x101, ipoib, mtu=5 : 0x200001=full;\n")
	hangUp(t, d)
	eventually(t, "the broadcast group of A in place of it", func() (bool, string) {
		said := groups()
		return strings.Contains(said, "ff12:401b:8101::ffff:ffff") && strings.Count(said, "MGID") == 1 && strings.Contains(said, "0x85"), said
	})
}
