package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// movedIn are the partitions of an OpenSM that is to be replaced. The last one is not adopted.
const movedIn = `Default=0x7fff : ALL=limited, SELF=full;
A=0x0101 : 0x200001=full, 0x300001=full;
B=0x0102 : 0x300001=limited;
C=0x0103 : 0x200001=full;
`

// leastReads is how often the P_Keys of a host are read while one manager replaces the other, and right after that.
const leastReads = 20

// holders reads with smpquery which P_Keys but those of the default partition the adapters of hosts and their switch ports have.
type holders struct {
	client ibsimlab.Client
	from   string // node
}

// keys returns those of the host behind a port of the switch, and those of the port.
func (h *holders) keys(ctx context.Context, port ib.PortNum) (host, leaf string, err error) {
	for out, of := range map[*string]struct {
		route string
		port  ib.PortNum
	}{&host: {fmt.Sprintf("0,1,%d", port), 0}, &leaf: {"0,1", port}} {
		found, err := h.client.PKeys(ctx, h.from, of.route, of.port, ib.MKey{})
		if err != nil {
			return "", "", err
		}
		found = slices.DeleteFunc(found, func(k ib.PKey) bool { return k.Base() == ib.DefaultPKeyLimited })
		slices.Sort(found)
		*out = strings.Trim(fmt.Sprint(found), "[]")
	}
	return host, leaf, nil
}

// TestAdoptedFabric has the real OpenSM rule a fabric of ibsim, an operator adopt what its hosts have, and the service take over.
// smpquery finds the adopted P_Keys in each read, until a deadline passes; then OpenSM takes over again, and sets the same ones.
func TestAdoptedFabric(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "opensm")
	lab := ibsimtest.Start(t, []byte(oneSwitch))
	program, ctx := operatorProgram(t), t.Context()
	rules := filepath.Join(t.TempDir(), "partitions.conf")
	write(t, rules, movedIn)
	opensm := "m_key 0x0\npartition_config_file " + rules + "\n"
	theirs := reign(t, lab.Client(), opensm)
	seen := &holders{client: lab.Client(), from: "sm"}
	holds := func(port ib.PortNum, want string) {
		t.Helper()
		eventually(t, fmt.Sprintf("P_Keys %q of the host at port %d", want, port), func() (bool, string) {
			host, leaf, err := seen.keys(ctx, port)
			return err == nil && host == want && leaf == want, fmt.Sprintf("%q, its switch port %q, %v", host, leaf, err)
		})
	}
	before1, before2 := "0x8101 0x8103", "0x0102 0x8101"
	holds(1, before1)
	holds(2, before2)

	// The service is there, and does not see the fabric yet.
	dir, address := install(t, "--fabric-port", nobody())
	edit(t, dir, map[string]string{"# confirm it.\n  two_persons: true": "# confirm it.\n  two_persons: false"})
	d := start(t, dir)
	c := operator(t, dir, address)
	plan := t.TempDir()
	write(t, filepath.Join(plan, "portcullisd.yaml"), "fabric:\n  enforcement: accepted\n  port: ibsim:"+lab.Socket()+"/sm\n")
	report, code, said := observed(t, plan)
	if code != 8 {
		t.Fatalf("observe: exit code %d: %s", code, said)
	}
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(plan, "observed.json"), string(text))
	out, err := exec.CommandContext(ctx, program, "adopt", "plan", filepath.Join(plan, "observed.json"), "-o", "json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Ports []v1.AdoptedPort `json:"ports"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	adopt := func(guid ib.GUID, within time.Duration, keys ...ib.PKey) string {
		t.Helper()
		i := slices.IndexFunc(list.Ports, func(p v1.AdoptedPort) bool { return p.GUID == guid })
		if i < 0 {
			t.Fatalf("the plan does not list port %v:\n%s", guid, out)
		}
		p := list.Ports[i]
		for _, k := range keys {
			if !slices.Contains(p.PKeys, k) {
				t.Fatalf("the plan does not list P_Key %v of port %v:\n%s", k, guid, out)
			}
		}
		p.PKeys = keys
		a, err := c.Adoptions().Start(ctx, &v1.NewAdoption{Ports: []v1.AdoptedPort{p}, Deadline: time.Now().Add(within), Confirm: len(keys), Reason: "the site moves in"})
		if err == nil {
			_, err = c.Adoptions().Confirm(ctx, a.ID, v1.AdoptionConfirm{Digest: a.Digest, Confirm: len(keys)})
		}
		if err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	long, short := adopt(0x200001, 72*time.Hour, 0x8101), adopt(0x300001, 90*time.Minute, 0x8101, 0x0102)
	d.stop()
	edit(t, dir, map[string]string{nobody(): "ibsim:" + lab.Socket() + "/sm", "enforcement: verified": "enforcement: accepted", "m_key_enable: auto": "m_key_enable: ignore"})

	// The service takes over, while each read finds what was adopted.
	watched := &holders{client: lab.Client(), from: "h2"}
	stop, missed, reads := make(chan struct{}), make(chan string, 1), 0
	go func() {
		defer close(missed)
		for tries := 0; ; tries++ {
			for port, want := range map[ib.PortNum][]string{1: {"0x8101"}, 2: {"0x8101", "0x0102"}} {
				host, leaf, err := watched.keys(ctx, port)
				if err != nil {
					continue // there is no answer, while one manager replaces the other
				}
				reads++
				for _, k := range want {
					if !strings.Contains(host, k) || !strings.Contains(leaf, k) {
						missed <- fmt.Sprintf("read %d of port %d has no %s: the host has %q, the switch port %q", reads, port, k, host, leaf)
						return
					}
				}
			}
			select {
			case <-stop:
				if reads >= leastReads || tries > 10*leastReads {
					return
				}
			default:
			}
		}
	}()
	theirs.stop()
	d = start(t, dir)
	d.settled(c)
	holds(1, "0x8101")
	holds(2, before2)
	for _, id := range []string{long, short} {
		eventually(t, id+" read back", func() (bool, string) {
			a, err := c.Adoptions().Get(ctx, id)
			if err != nil {
				return false, err.Error()
			}
			return !slices.ContainsFunc(a.Members, func(m v1.AdoptedMember) bool { return m.State != "kept" }), fmt.Sprintf("%+v", a.Members)
		})
	}
	close(stop)
	for what := range missed {
		t.Error(what)
	}
	if reads < leastReads {
		t.Errorf("%d reads were answered, want %d", reads, leastReads)
	}

	// The deadline passes while the service is stopped. The other host keeps what it has.
	d.stop()
	d = startAt(t, dir, 2*time.Hour)
	d.settled(c)
	holds(2, "")
	holds(1, "0x8101")
	eventually(t, short+" over", func() (bool, string) {
		a, err := c.Adoptions().Get(ctx, short)
		return err == nil && a.State == v1.AdoptionOver && len(a.Members) == 0, fmt.Sprintf("%+v %v", a, err)
	})

	// The way back.
	d.stop()
	holds(1, "0x8101")
	reign(t, lab.Client(), opensm)
	holds(1, before1)
	holds(2, before2)
}
