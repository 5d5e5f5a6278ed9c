package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/lonesm"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// TestServiceMovesToAnotherMachine is the recovery of docs/operate/when.md, "The service host
// is lost": state directory and configuration are copied to another machine, whose adapter
// is at another switch, and the service is started there. With M_Keys, a declared topology
// that is enforced, and admitted hosts that talk to each other, no LID, route, M_Key or
// P_Key of theirs changes, and no packet is lost. Then the same on the way back.
func TestServiceMovesToAnotherMachine(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "smpquery")
	r := newRepair(t, "h1", "h2")
	r.admit()
	r.settled()
	stop := r.traffic("h1", "h2")
	const away = "h5"
	if r.list.Find("sm").Ports[1].Peer == r.list.Find(away).Ports[1].Peer {
		t.Fatal("both adapters are on one switch")
	}
	for _, node := range []string{away, "sm"} {
		devices, tools := r.devices("sm", away), r.toolsSee("h1", "h2")
		r.moveTo(node)
		r.settled()
		if d := cmp.Diff(devices, r.devices("sm", away)); d != "" {
			t.Errorf("on %s: devices were changed (-before +after):\n%s", node, d)
		}
		if d := cmp.Diff(tools, r.toolsSee("h1", "h2")); d != "" {
			t.Errorf("on %s: smpquery sees (-before +after):\n%s", node, d)
		}
		for name := range r.hosts {
			phase(t, r.olga, name, v1.PhaseAdmitted)
		}
		o, err := r.olga.Fabric().Overview(t.Context())
		if err != nil || o.Nodes.Switches+o.Nodes.CAs != len(r.list.Nodes) {
			t.Errorf("on %s: the service sees %+v, %v; want %d nodes", node, o, err, len(r.list.Nodes))
		}
		k, err := r.olga.Keys().Get(t.Context())
		if err != nil || k.Devices["held"] != len(r.list.Nodes) {
			t.Errorf("on %s: keys stand as %+v, %v", node, k, err)
		}
		if said := r.d.lines.String(); strings.Contains(said, "no longer a member") || strings.Contains(said, "withdrawn") {
			t.Errorf("on %s: a membership was taken away:\n%s", node, said)
		}
	}
	if sent, lost := stop(); sent == 0 || lost > 0 {
		t.Errorf("%d of %d packets between admitted hosts were lost", lost, sent)
	}
}

// moveTo stops the service, and starts it on the adapter of another node from a copy of
// its configuration and state, as another machine has them.
func (r *repair) moveTo(node string) {
	r.t.Helper()
	r.d.stop()
	file := filepath.Join(r.dir, "portcullisd.yaml")
	data, err := os.ReadFile(file)
	if err != nil {
		r.t.Fatal(err)
	}
	text := string(data)
	state := regexp.MustCompile(`(?m)^state_dir: "?([^"\n]+)"?$`).FindStringSubmatch(text)
	port := regexp.MustCompile(`ibsim:` + regexp.QuoteMeta(r.client.Socket) + `/\w+`)
	if state == nil || !port.MatchString(text) {
		r.t.Fatalf("the configuration names no state directory, or no port:\n%s", text)
	}
	machine := r.t.TempDir()
	dir, moved := filepath.Join(machine, "etc"), filepath.Join(machine, "state")
	for from, to := range map[string]string{r.dir: dir, state[1]: moved} {
		if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
			r.t.Fatalf("copy %s: %v\n%s", from, err, out)
		}
	}
	text = port.ReplaceAllLiteralString(text, "ibsim:"+r.client.Socket+"/"+node)
	write(r.t, filepath.Join(dir, "portcullisd.yaml"), strings.ReplaceAll(text, state[1], moved))
	r.dir = dir
	r.d = start(r.t, dir)
}

// devices reads LIDs, routes, M_Keys and P_Keys of all devices, except for the P_Keys at the cables of the nodes that the
// service runs on: it is a full member of the default partition, and other hosts are limited ones.
func (r *repair) devices(managers ...string) map[string]string {
	out := make(map[string]string)
	own := make(map[string]bool)
	for _, name := range managers {
		p := r.list.Find(name).Ports[1]
		own[name+"/1"], own[fmt.Sprintf("%s/%d", p.Peer, p.PeerPort)] = true, true
	}
	for i := range r.list.Nodes {
		n := &r.list.Nodes[i]
		end := ib.PortNum(1)
		if n.Type == ib.NodeSwitch {
			end = 0
			for lid := ib.LID(1); lid < 32; lid++ {
				out[fmt.Sprintf("route of %s to %d", n.Name, lid)] = fmt.Sprint(r.fab.Egress(n.Name, lid))
			}
		}
		pi := r.fab.PortInfo(n.Name, end)
		out["LID of "+n.Name] = fmt.Sprint(pi.LID)
		out["M_Key of "+n.Name] = fmt.Sprintf("%x, level %d", pi.MKey.Reveal(), pi.MKeyProtectBits)
		for num := 1; num < len(n.Ports); num++ {
			if at := fmt.Sprintf("%s/%d", n.Name, num); !own[at] {
				out["P_Keys of "+at] = fmt.Sprint(r.fab.PKeyTable(n.Name, ib.PortNum(num)))
			}
		}
	}
	return out
}

// toolsSee is what unchanged smpquery shows of hosts on the switch of the node "sm", and of
// their switch ports, under the M_Keys that those devices have.
func (r *repair) toolsSee(hosts ...string) map[string]string {
	r.t.Helper()
	out := make(map[string]string)
	leaf := r.list.Find("sm").Ports[1].Peer
	query := func(node string, num ib.PortNum, args ...string) string {
		key := r.fab.PortInfo(node, num).MKey.Reveal()
		if key == 0 {
			r.t.Errorf("%s has no M_Key", node)
		}
		text, err := r.client.Diag(r.t.Context(), "sm", "smpquery", append([]string{"--m_key", fmt.Sprintf("%#x", key), "-D"}, args...)...)
		if err != nil {
			r.t.Errorf("smpquery of %s: %v\n%s", node, err, text)
		}
		return string(text)
	}
	for _, name := range hosts {
		p := r.list.Find(name).Ports[1]
		if p.Peer != leaf {
			r.t.Fatalf("%s is not on %s", name, leaf)
		}
		way := fmt.Sprintf("0,1,%d", p.PeerPort)
		out["P_Keys of "+name] = query(name, 1, "pkeys", way, "1")
		out["P_Keys in front of "+name] = query(leaf, 0, "pkeys", "0,1", fmt.Sprint(p.PeerPort))
		for line := range strings.Lines(query(name, 1, "portinfo", way, "1")) {
			if field, value, _ := strings.Cut(line, ":"); field == "Mkey" || field == "Lid" || field == "LinkState" {
				out[field+" of "+name] = value
			}
		}
	}
	return out
}

// An age identity of tests, and its recipient. It opens nothing real.
const (
	testIdentity  = "AGE-SECRET-KEY-1645KA30328GAD5D3XXAA2E0H6CU64ZLWWE264Z94VHNP3L2QJVPQDF6H3Y"
	testRecipient = "age10yq6cv0s9rax04ursv2nhq2c36qrfesxvqmgrq5t2gdkkjuw5dzq93avta"
)

// TestKeysIntoFreshState: from "portcullis keys export", or from an escrow kit, and nothing
// else, a Subnet Manager has a fabric with M_Keys from another adapter, and changes no LID,
// route, M_Key or P_Key; nor once the import is taken out again.
func TestKeysIntoFreshState(t *testing.T) {
	t.Parallel()
	portcullis := operatorProgram(t)
	command := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
	}
	f := servedKeyFabric(t, sim.Modern())
	away := f.elsewhere()
	members := filepath.Join(t.TempDir(), "partitions.conf")
	write(t, members, fmt.Sprintf("A=0x101 : %v=full;\n", f.list.Find("h1").PortGUID(1)))
	old := setKeys(t, "m_key_enable: enable")
	old.report(t, f, "sm", members)
	f.held(t)
	before := (&repair{fab: f.Fabric, list: f.list}).devices("sm", away)

	facts, files := filepath.Join(old.state, "facts"), t.TempDir()
	export := filepath.Join(files, "export")
	command(portcullis, "keys", "export", "--facts", facts, "--root", old.root, "--out", export)
	fresh := setKeys(t, "m_key_enable: enable", "import: "+export, "import_keep: true")
	f.unchangedBy(t, before, away, fresh.report(t, f, away, members))
	write(t, fresh.config, "fabric:\n  keys:\n    root: keys.root\n    m_key_enable: enable\n")
	f.unchangedBy(t, before, away, fresh.report(t, f, away, members))

	identity, recipients, kit := filepath.Join(files, "identity"), filepath.Join(files, "recipients"), filepath.Join(files, "kit")
	write(t, identity, testIdentity+"\n")
	write(t, recipients, testRecipient+"\n")
	if err := os.Chmod(identity, 0o600); err != nil {
		t.Fatal(err)
	}
	command(portcullis, "keys", "escrow", "create", "--facts", facts, "--root", old.root, "--recipients", recipients, "--out", kit)
	recovered := setKeys(t, "m_key_enable: enable")
	command(portcullis, "keys", "recover", kit, "--identity", identity, "--root", recovered.root, "--out", recovered.state)
	f.unchangedBy(t, before, away, recovered.report(t, f, away, members))

	write(t, filepath.Join(export, "guid2mkey"), "0x0000000000000010 0x123456789abcdeff\n\n0x0000000000000020 0x123456789abcdeff\n\n")
	shared := setKeys(t, "m_key_enable: enable", "import: "+export, "import_keep: true")
	out, err := exec.CommandContext(t.Context(), "portcullisd", shared.on(f, away, "--once")...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "have the same M_Key") {
		t.Errorf("one key for two devices was to stay: %v\n%s", err, out)
	}
}

// elsewhere returns a host that is not on the switch of the node "sm".
func (f *keyFabric) elsewhere() (away string) {
	for i := range f.list.Nodes {
		if n := &f.list.Nodes[i]; n.Type == ib.NodeCA && n.Ports[1].Peer != f.list.Find("sm").Ports[1].Peer {
			away = n.Name
		}
	}
	return away
}

// on is the command line of a subnet manager on the adapter of a node.
func (s keysSetup) on(f *keyFabric, node string, more ...string) []string {
	return append([]string{"sm", "--port", "ibsim:" + f.client.Socket + "/" + node, "--config", s.config, "--state-dir", s.state}, more...)
}

// report brings the fabric up on the adapter of a node.
func (s keysSetup) report(t *testing.T, f *keyFabric, node, members string) (r lonesm.Report) {
	t.Helper()
	var said strings.Builder
	cmd := exec.CommandContext(t.Context(), "portcullisd", s.on(f, node, "--partitions", members, "--once", "--json")...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		t.Fatalf("portcullisd sm on %s: %v\n%s%s", node, err, out, said.String())
	}
	return r
}

// unchangedBy fails the test unless a bring-up on the adapter of another node found the
// whole fabric, and left it as it was.
func (f *keyFabric) unchangedBy(t *testing.T, before map[string]string, away string, said lonesm.Report) {
	t.Helper()
	if d := cmp.Diff(before, (&repair{fab: f.Fabric, list: f.list}).devices("sm", away)); d != "" {
		t.Errorf("devices were changed (-before +after):\n%s", d)
	}
	if n := said.Nodes; n.Switches+n.CAs != len(f.list.Nodes) || len(said.Problems) > 0 {
		t.Errorf("%d switches and %d CAs, want %d nodes; problems %q", n.Switches, n.CAs, len(f.list.Nodes), said.Problems)
	}
	for _, k := range said.SMPs.Kinds {
		if k.Method == "Set" && k.Attribute != "PortInfo" && (k.Attribute != "P_KeyTable" || k.Sent > 4) {
			t.Errorf("%d Sets of %s; want none but of P_Key tables at the cables of the two adapters", k.Sent, k.Attribute)
		}
	}
}

// TestWrongRootIsNamed: with another root than the keys were sealed under, the service
// attaches to nothing, and says that the keys do not open and which root is wanted.
func TestWrongRootIsNamed(t *testing.T) {
	t.Parallel()
	f := servedKeyFabric(t, sim.Modern())
	dir, address := install(t, "--fabric-port", "ibsim:"+f.client.Socket+"/sm")
	d := start(t, dir)
	c := operator(t, dir, address)
	eventually(t, "a settled fabric", func() (bool, string) {
		o, err := c.Fabric().Overview(t.Context())
		return err == nil && o.Settled, fmt.Sprint(err, d.lines)
	})
	d.stop()
	write(t, filepath.Join(dir, "keys.root"), strings.Repeat("76543210fedcba980123456789abcdef", 2)+"\n")
	d = start(t, dir)
	eventually(t, "word of the wrong root", func() (bool, string) {
		s, err := c.SM().Get(t.Context())
		return err == nil && len(s.Problems) > 0 && strings.Contains(s.Problems[0], "open the keys of devices"), fmt.Sprint(s, err, d.lines)
	})
	said := d.lines.String()
	for _, want := range []string{"the fabric is not managed, for the keys of its devices do not open", "does not open it", "name that one"} {
		if !strings.Contains(said, want) {
			t.Errorf("the log does not say %q:\n%s", want, said)
		}
	}
	if strings.Contains(said, "attached to the fabric") || strings.Contains(said, "out of reach") {
		t.Errorf("the service attached, or blames the fabric:\n%s", said)
	}
	before := d.lines.String()
	if n := strings.Count(before, "do not open"); n != 1 {
		t.Errorf("it is told %d times, want once", n)
	}
}
