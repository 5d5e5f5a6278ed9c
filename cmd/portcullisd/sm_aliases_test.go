package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/salab"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sim/simtest"
)

// TestAliasesOfAFile: a port gets the alias GUIDs that the file lists for it and no others,
// keeps them when the Subnet Manager is killed, and loses what the file lists no longer. It
// runs on our simulator because ibsim refuses to be given any.
func TestAliasesOfAFile(t *testing.T) {
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
	c, err := salab.Dial(t.Context(), at.Socket, "h1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ask := func(method mad.Method, key ib.SAKey, guids ...ib.GUID) (salab.Answer, []ib.GUID) {
		t.Helper()
		rec := mad.GUIDInfoRecord{LID: c.LID}
		copy(rec.GUID[1:], guids)
		q := salab.Question{Method: method, Attr: mad.AttrGUIDInfoRecord, Mask: mad.GUIDInfoComponentLID | mad.GUIDInfoComponentBlockNum, Record: make([]byte, mad.SADataSize), Key: key}
		for i := range guids {
			q.Mask |= mad.GUIDInfoComponentGUID(i + 1)
		}
		if err := mad.Encode(q.Record, &rec); err != nil {
			t.Fatal(err)
		}
		a, err := c.Ask(q)
		if err != nil {
			t.Fatal(err)
		}
		if a.Silent() {
			return a, nil
		}
		rec = mad.GUIDInfoRecord{}
		if err := mad.Decode(a.Data, &rec); err != nil || a.Status != mad.StatusOK {
			t.Fatalf("%v of GUIDInfoRecord: %v, %v\n%s", method, a.Status, err, d.lines.String())
		}
		return a, rec.GUID[1:3]
	}
	trusted := ib.NewSAKey(0x8f3ac91d27b6e504)
	becomes := func(what string, want ...ib.GUID) {
		t.Helper()
		eventually(t, what, func() (bool, string) {
			_, shown := ask(mad.MethodGet, trusted)
			holds := append(f.GUIDs("h1", 1), 0, 0)[1:3]
			return slices.Equal(shown, want) && slices.Equal(holds, want), fmt.Sprintf("shown %v, held %v\n%s", shown, holds, d.lines.String())
		})
	}
	if a, _ := ask(mad.MethodSet, ib.SAKey{}, 0xA1); !a.Silent() {
		t.Errorf("without the SA_Key: %v", a.Status)
	}
	if _, got := ask(mad.MethodSet, trusted, 0xB1, 0xC1); got[0] != 0 || got[1] != 0 {
		t.Errorf("an alias of another port, and one that nobody may have, are given: %v", got)
	}
	if _, got := ask(mad.MethodSet, trusted, 0xA2, 0); got[0] != 0xA2 || got[1] != 0xA1 {
		t.Errorf("one that is listed, and one to be chosen: %v", got)
	}
	becomes("the aliases", 0xA2, 0xA1)
	d.kill()
	d = run()
	becomes("the aliases after a restart", 0xA2, 0xA1)
	write(t, in("aliases"), fmt.Sprintf("%v 0xa1\n", own))
	hangUp(t, d)
	becomes("the one that is still listed", 0, 0xA1)
	if _, got := ask(mad.MethodDelete, trusted, 0, 0xA1); got[1] != 0 {
		t.Errorf("after Delete: %v", got)
	}
	becomes("none after Delete", 0, 0)
}
