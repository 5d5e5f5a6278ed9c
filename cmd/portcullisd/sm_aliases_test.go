package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
)

// TestAliasesOfAFile: a port gets the alias GUIDs that the file lists for it and no others,
// keeps them when the Subnet Manager is killed, and loses what the file lists no longer. It
// runs on our simulator because ibsim refuses to be given any.
func TestAliasesOfAFile(t *testing.T) {
	t.Parallel()
	l, err := netlist.Single(netlist.Shape{Hosts: 3, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	f := sim.New(l)
	at := simtest.Serve(t, f)
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	own, other := l.Find("h1").PortGUID(1), l.Find("h2").PortGUID(1)
	write(t, in("sa.key"), "0x8f3ac91d27b6e504\n")
	write(t, in("aliases"), fmt.Sprintf("%v 0xa1 0xa2\n%v 0xb1\n", own, other))
	write(t, in("config.yaml"), "fabric: {sa: {key_file: sa.key, alias_guids_file: aliases}}\n")
	run := func() *process {
		d := launch(t, exec.Command("portcullisd", "sm", "--config", in("config.yaml"), "--port", "ibsim:"+at.Socket+"/sm", "--state-dir", in("state")))
		eventually(t, "a settled fabric", func() (bool, string) {
			return strings.Contains(d.lines.String(), "settled with"), d.lines.String()
		})
		return d
	}
	d := run()
	x := newRenamer(t, f, at, "h1")
	trusted := ib.NewSAKey(0x8f3ac91d27b6e504)
	x.ask(mad.MethodGet, trusted)
	if a, _ := x.ask(mad.MethodSet, ib.SAKey{}, 0xA1); !a.Silent() {
		t.Errorf("without the SA_Key: %v", a.Status)
	}
	if _, got := x.ask(mad.MethodSet, trusted, 0xB1, 0xC1); got[0] != 0 || got[1] != 0 {
		t.Errorf("an alias of another port, and one that nobody may have, are given: %v", got)
	}
	if _, got := x.ask(mad.MethodSet, trusted, 0xA2, 0); got[0] != 0xA2 || got[1] != 0xA1 {
		t.Errorf("one that is listed, and one to be chosen: %v", got)
	}
	x.becomes(d, "the aliases", 0xA2, 0xA1)
	d.kill()
	d = run()
	x.becomes(d, "the aliases after a restart", 0xA2, 0xA1)
	write(t, in("aliases"), fmt.Sprintf("%v 0xa1\n", own))
	hangUp(t, d)
	x.becomes(d, "the one that is still listed", 0, 0xA1)
	if _, got := x.ask(mad.MethodDelete, trusted, 0, 0xA1); got[1] != 0 {
		t.Errorf("after Delete: %v", got)
	}
	x.becomes(d, "none after Delete", 0, 0)
}

// TestAliasesOfTheInventory: in the service it is the inventory that says so, and an import
// is in force at once.
func TestAliasesOfTheInventory(t *testing.T) {
	t.Parallel()
	l, err := netlist.Single(netlist.Shape{Hosts: 3, Radix: 8})
	if err != nil {
		t.Fatal(err)
	}
	f := sim.New(l)
	at := simtest.Serve(t, f)
	dir, address := install(t, "--fabric-port", "ibsim:"+at.Socket+"/sm")
	write(t, filepath.Join(dir, "sa.key"), "0x8f3ac91d27b6e504\n")
	file := filepath.Join(dir, "portcullisd.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, strings.Replace(string(text), "    key_file: \"\"", "    key_file: sa.key", 1))
	d := start(t, dir)
	c := operator(t, dir, address)
	h1 := l.Find("h1")
	has := func(aliases string) {
		t.Helper()
		text := fmt.Sprintf("hosts: [{id: h1, hcas: [{node_guid: %v, ports: [{port: 1, guid: %v, aliases: [%s]}]}]}]\n", h1.GUID, h1.PortGUID(1), aliases)
		if _, err := c.Inventory().Import(t.Context(), []v1.InventoryFile{{Name: "rack.yaml", Content: text}}, v1.RepairTicket{}, false); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "a settled fabric", func() (bool, string) {
		s, err := c.SM().Get(t.Context())
		return err == nil && s.Settled, fmt.Sprint(s, err)
	})
	x := newRenamer(t, f, at, "h1")
	trusted := ib.NewSAKey(0x8f3ac91d27b6e504)
	x.ask(mad.MethodGet, trusted)
	if _, got := x.ask(mad.MethodSet, trusted, 0xA1, 0); got[0] != 0 || got[1] != 0 {
		t.Errorf("given before the inventory lists any: %v", got)
	}
	has("0xa1, 0xa2")
	eventually(t, "an alias of the inventory", func() (bool, string) {
		_, got := x.ask(mad.MethodSet, trusted, 0xA2, 0xC1)
		return got[0] == 0xA2 && got[1] == 0, d.lines.String()
	})
	x.becomes(d, "the alias", 0xA2, 0)
	has("0xa1")
	x.becomes(d, "none, as the inventory lists another", 0, 0)
}

// renamer is a client at a host that asks for alias GUIDs of its port.
type renamer struct {
	t      *testing.T
	fabric *sim.Fabric
	host   string
	*satest.Client
}

func newRenamer(t *testing.T, f *sim.Fabric, at ibsimlab.Client, host string) *renamer {
	t.Helper()
	c, err := satest.Dial(t.Context(), at.Socket, host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &renamer{t, f, host, c}
}

// ask asks for entries from 1 on, and returns the first two of the answer. With a key it asks until there is one; without,
// all ones say that there is none.
func (x *renamer) ask(method mad.Method, key ib.SAKey, guids ...ib.GUID) (satest.Answer, []ib.GUID) {
	x.t.Helper()
	rec := mad.GUIDInfoRecord{LID: x.LID}
	copy(rec.GUID[1:], guids)
	q := satest.Question{Method: method, Attr: mad.AttrGUIDInfoRecord, Mask: mad.GUIDInfoComponentLID | mad.GUIDInfoComponentBlockNum, Record: make([]byte, mad.SADataSize), Key: key}
	for i := range guids {
		q.Mask |= mad.GUIDInfoComponentGUID(i + 1)
	}
	if err := mad.Encode(q.Record, &rec); err != nil {
		x.t.Fatal(err)
	}
	ask := x.Answered
	if key.IsZero() {
		ask = x.Ask
	}
	a, err := ask(q)
	if err != nil {
		x.t.Fatal(err)
	}
	if a.Silent() {
		return a, []ib.GUID{^ib.GUID(0), ^ib.GUID(0)}
	}
	rec = mad.GUIDInfoRecord{}
	if err := mad.Decode(a.Data, &rec); err != nil || a.Status != mad.StatusOK {
		x.t.Fatalf("%v of GUIDInfoRecord: %v, %v", method, a.Status, err)
	}
	return a, rec.GUID[1:3]
}

// becomes waits until both the records and the port show entries 1 and 2.
func (x *renamer) becomes(d *process, what string, want ...ib.GUID) {
	x.t.Helper()
	eventually(x.t, what, func() (bool, string) {
		_, shown := x.ask(mad.MethodGet, ib.NewSAKey(0x8f3ac91d27b6e504))
		holds := append(x.fabric.GUIDs(x.host, 1), 0, 0)[1:3]
		return slices.Equal(shown, want) && slices.Equal(holds, want), fmt.Sprintf("shown %v, held %v\n%s", shown, holds, d.lines.String())
	})
}
