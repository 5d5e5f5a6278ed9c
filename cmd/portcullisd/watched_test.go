package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/netlist/netdiff"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/packaging/testenv"
)

// twoLevels is a fabric with GUIDs that have letters, links of several kinds
// and a port with a system of its own.
func twoLevels(t *testing.T) []byte {
	t.Helper()
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 24, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	for i := range l.Nodes {
		l.Nodes[i].VendorID, l.Nodes[i].DeviceID = 0x2C9, 0xCB20
	}
	var b bytes.Buffer
	if _, err := l.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("0x0020"), []byte("0xab20"))
}

// alone runs "portcullisd sm" with a socket at host "sm" of a lab and returns a client for it, once all names are known.
func alone(t *testing.T, lab *ibsimlab.Lab, nodes int, args ...string) (*client.Client, *process, string) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "sm.sock")
	d := launch(t, exec.Command("portcullisd", append([]string{"sm", "--port", "ibsim:" + lab.Socket() + "/sm", "--socket", socket}, args...)...))
	c, err := client.New(client.Options{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	eventually(t, "a settled fabric with names", func() (bool, string) {
		n := 0
		for page, err := range c.Fabric().Nodes(t.Context(), v1.NodeQuery{}) {
			if err != nil || !page.Settled {
				return false, "not settled"
			}
			for _, node := range page.Items {
				if node.Description != "" {
					n++
				}
			}
		}
		return n == nodes, d.lines.String()
	})
	return c, d, socket
}

func fabricDump(t *testing.T, c *client.Client, format string) string {
	t.Helper()
	var b bytes.Buffer
	if err := c.Fabric().Dump(t.Context(), &b, format, ""); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDumpsAreThoseOfExistingTools compares what we write with what the real
// ibnetdiscover prints and the real OpenSM writes of the same fabric.
func TestDumpsAreThoseOfExistingTools(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "ibnetdiscover", "opensm")
	lab := ibsimtest.Start(t, twoLevels(t))
	c, d, _ := alone(t, lab, 24+6+4)

	theirs, ours := ibsimtest.Diag(t, lab, "sm", "ibnetdiscover"), fabricDump(t, c, "ibnetdiscover")
	// ibnetdiscover writes nodes in the order in which it found them, we in that
	// of their GUIDs, and the time is another.
	if d := cmp.Diff(records(ours), records(theirs)); d != "" {
		t.Errorf("ibnetdiscover (-ours +theirs):\n%s", d)
	}
	a, b := parsed(t, "ours", ours), parsed(t, "theirs", theirs)
	if changes := netdiff.Compare(a, b, netdiff.Options{Names: true, LIDs: true, Faster: true}); len(changes) > 0 {
		t.Errorf("netdiff finds %+v", changes)
	}

	subnet, guids := fabricDump(t, c, "opensm-subnet-lst"), fabricDump(t, c, "guid2lid")
	d.stop()
	cmd, err := lab.Client().Command(t.Context(), "sm", "opensm", "-o", "-D", "0x43", "-f", filepath.Join(lab.Dir(), "osm.log"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("opensm: %v\n%s", err, out)
	}
	for name, ours := range map[string]string{"opensm-subnet.lst": subnet, "guid2lid": guids} {
		// OpenSM writes in the order of its hash tables. For the far end of a cable it takes the 16 bits of the device for
		// 32, so that CB20 is CB200000.
		theirs := strings.ReplaceAll(file(t, lab, name), "DevID:CB200000 ", "DevID:CB20 ")
		if d := cmp.Diff(sortedLines(ours), sortedLines(theirs)); d != "" {
			t.Errorf("%s (-ours +theirs):\n%s", name, d)
		}
	}
}

func parsed(t *testing.T, name, text string) *netlist.Netlist {
	t.Helper()
	l, err := netlist.Parse(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func file(t *testing.T, lab *ibsimlab.Lab, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(lab.Dir(), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

var generated = regexp.MustCompile(`(?m)^# Topology file: generated on .*\n`)

// records splits what ibnetdiscover prints into nodes, sorted.
func records(text string) []string {
	all := strings.Split(strings.TrimSpace(generated.ReplaceAllString(text, "")), "\n\n")
	slices.Sort(all)
	return all
}

// sortedLines returns the lines of a file that are not empty, sorted.
func sortedLines(text string) []string {
	all := slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return l == "" })
	slices.Sort(all)
	return all
}

// TestLoneSMIsWatched: socket and metrics of the Subnet Manager alone answer
// while the fabric comes up and after, and go with the process.
func TestLoneSMIsWatched(t *testing.T) {
	t.Parallel()
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	address := testenv.Address(t)
	c, d, socket := alone(t, lab, 4, "--metrics", address)
	p, err := c.SM().Progress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !p.Settled || p.Nodes.CAs != 3 || p.Sent == 0 || len(p.Settles) == 0 || p.Settles[0].Cause != "start" {
		t.Errorf("progress %+v", p)
	}
	r, err := c.Fabric().Routes(t.Context(), "h1", "sm")
	if err != nil || len(r.There.Hops) != 3 || r.There.Hops[1].Name != "leaf1" {
		t.Errorf("route %+v, %v", r, err)
	}
	text := fetched(t, "http://"+address+"/metrics")
	for _, want := range []string{
		`portcullis_sm_role{role="master"} 1`, "portcullis_sm_settled 1", `portcullis_fabric_nodes{type="ca"} 3`,
		`portcullis_sm_sweep_seconds_count{kind="bringup"} 1`, `portcullis_sm_smp_total{class="subn_directed",result="answered"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("metrics lack %s:\n%s", want, text)
		}
	}
	if text := fetched(t, "http://"+address+"/metrics/fabric"); !strings.Contains(text, `infiniband_hca_info{guid="0x0000000000200000",hca="h1"`) {
		t.Errorf("metrics of devices:\n%s", text)
	}
	d.stop()
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the end: %v, want no socket", err)
	}
}

func fetched(t *testing.T, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, resp.Status, err)
	}
	return string(body)
}

// TestServiceShowsTheFabric: the API of the service answers from the same
// memory, with its credentials.
func TestServiceShowsTheFabric(t *testing.T) {
	t.Parallel()
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	dir, address := install(t, "--fabric-port", "ibsim:"+lab.Socket()+"/sm")
	start(t, dir)
	c := operator(t, dir, address)
	eventually(t, "an overview of a settled fabric", func() (bool, string) {
		o, err := c.Fabric().Overview(t.Context())
		return err == nil && o.Settled && o.Nodes.CAs == 3 && o.Ports.Active == 6, ""
	})
	if _, err := withToken(t, dir, address, "x").Fabric().Overview(t.Context()); err == nil {
		t.Error("the fabric is shown to a wrong token")
	}
}
