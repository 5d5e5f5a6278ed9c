package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
)

// TestSMReadsItsConfigurationAgain changes what follows from marks and the MTU of
// a running subnet manager with partitions, and then makes mistakes.
func TestSMReadsItsConfigurationAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	net := filepath.Join(dir, "net") // ibsim does not keep the MTU
	write(t, net, oneSwitch)
	file, socket := filepath.Join(dir, "sm.yaml"), filepath.Join(dir, "sm.sock")
	partitions := filepath.Join(dir, "partitions.conf")
	write(t, partitions, "A=0x101 : 0x200001=full;\n")
	write(t, file, "fabric:\n  lmc: 0\n")
	d := launch(t, exec.Command("portcullisd", "sm", "--port", "sim:"+net, "--enforcement", "accepted",
		"--config", file, "--socket", socket, "--partitions", partitions))
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	mtu := func(want int) func() (bool, string) {
		return func() (bool, string) {
			for page, err := range c.Fabric().Ports(t.Context(), v1.PortQuery{Type: "switch", State: "Active"}) {
				if err != nil || !page.Settled || len(page.Items) == 0 {
					return false, d.lines.String()
				}
				for _, p := range page.Items {
					if p.Num != 0 && p.MTU != want {
						return false, d.lines.String()
					}
				}
			}
			return true, ""
		}
	}
	eventually(t, "a settled fabric", mtu(4096))

	write(t, file, "fabric:\n  lmc: 1\n  ports: {max_mtu: 1024}\n  health: {marked: disable}\n")
	hangUp(t, d)
	eventually(t, "links with the new MTU", mtu(1024))
	eventually(t, "what needs a restart", func() (bool, string) {
		said := d.lines.String()
		return strings.Contains(said, "fabric.lmc changed: restart to apply"), said
	})
	if h := mark(t, c, v1.HealthMark{Place: "0x100000/1", Mark: v1.MarkUnhealthy, Reason: "test"}); h.Action != "disable" {
		t.Errorf("a mark is followed by %s", h.Action)
	}

	write(t, file, "fabric:\n  ports: {max_mtu: 17}\n")
	hangUp(t, d)
	eventually(t, "the complaint about the file", func() (bool, string) {
		said := d.lines.String()
		return strings.Contains(said, "the configuration that was in use stays in use") && strings.Contains(said, "max_mtu"), said
	})
	eventually(t, "links as before", mtu(1024))
}
