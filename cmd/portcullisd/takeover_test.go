package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// inherited is a service that takes over a fabric of ibsim from a real OpenSM, and has no record of its P_Keys.
type inherited struct {
	t       *testing.T
	lab     *ibsimlab.Lab
	options string // of OpenSM
	dir     string
	d       *process
	c       *client.Client
	seen    *holders
}

// inherit has OpenSM configure a fabric, and stops it. The service is installed and does not run.
func inherit(t *testing.T, takeover string) *inherited {
	t.Helper()
	t.Parallel()
	ibsimtest.Need(t, "opensm")
	i := &inherited{t: t, lab: ibsimtest.Start(t, []byte(oneSwitch))}
	rules := filepath.Join(t.TempDir(), "partitions.conf")
	write(t, rules, movedIn)
	i.options = "m_key 0x0\npartition_config_file " + rules + "\n"
	theirs := reign(t, i.lab.Client(), i.options)
	i.seen = &holders{client: i.lab.Client(), from: "sm"}
	i.holds("of OpenSM", 1, "0x8101 0x8103")
	i.holds("of OpenSM", 2, "0x0102 0x8101")
	theirs.stop()
	dir, address := install(t, "--fabric-port", "ibsim:"+i.lab.Socket()+"/sm")
	edit(t, dir, map[string]string{
		"enforcement: verified": "enforcement: accepted", "m_key_enable: auto": "m_key_enable: ignore", "takeover: keep": "takeover: " + takeover,
		"# confirm it.\n  two_persons: true": "# confirm it.\n  two_persons: false",
	})
	i.dir, i.c = dir, operator(t, dir, address)
	return i
}

// holds waits until a host and its switch port have some P_Keys of tenants, and no others.
func (i *inherited) holds(when string, port ib.PortNum, want string) {
	i.t.Helper()
	eventually(i.t, fmt.Sprintf("%s: P_Keys %q of the host at port %d", when, want, port), func() (bool, string) {
		host, leaf, err := i.seen.keys(i.t.Context(), port)
		return err == nil && host == want && leaf == want, fmt.Sprintf("%q, its switch port %q, %v", host, leaf, err)
	})
}

// watch reads P_Keys until the function that it returns is called, which reports a read in which one was missing, and how many there were.
func (i *inherited) watch(want map[ib.PortNum]string) (stop func() (missed string, reads int)) {
	ctx, ends := i.t.Context(), make(chan struct{})
	watched := &holders{client: i.lab.Client(), from: "h2"}
	missed, reads, done := "", 0, make(chan struct{})
	go func() {
		defer close(done)
		for tries := 0; missed == ""; tries++ {
			for port, keys := range want {
				host, _, err := watched.keys(ctx, port)
				if err != nil {
					continue // there is no answer, while one manager replaces the other
				}
				reads++
				if host != keys {
					missed = fmt.Sprintf("read %d of port %d: %q, want %q", reads, port, host, keys)
				}
			}
			select {
			case <-ends:
				if reads >= leastReads || tries > 10*leastReads {
					return
				}
			default:
			}
		}
	}()
	return func() (string, int) { close(ends); <-done; return missed, reads }
}

// found waits until one adoption is undecided and has so many memberships, all of them read back.
func (i *inherited) found(memberships int) *v1.AdoptionView {
	i.t.Helper()
	var out *v1.AdoptionView
	eventually(i.t, fmt.Sprintf("%d memberships that were found", memberships), func() (bool, string) {
		all, err := i.c.Adoptions().List(i.t.Context())
		if err != nil || len(all.Items) != 1 {
			return false, fmt.Sprint(all, err)
		}
		out, err = i.c.Adoptions().Get(i.t.Context(), all.Items[0].ID)
		if err != nil || out.State != v1.AdoptionFound || out.Memberships != memberships || all.Items[0].Memberships != memberships {
			return false, fmt.Sprint(out, err)
		}
		for _, m := range out.Members {
			if m.State != "kept" && m.State != "leaving" {
				return false, fmt.Sprint(out)
			}
		}
		return true, ""
	})
	return out
}

// over waits until the takeover is over.
func (i *inherited) over() {
	i.t.Helper()
	eventually(i.t, "the end of the takeover", func() (bool, string) {
		return strings.Contains(i.d.lines.String(), "the takeover of the fabric is over"), ""
	})
}

// TestTakeover: what an OpenSM left stays in the tables, also when the service is killed after it has read and before it has
// recorded it. A person ends some, and keeps others. What is set later is removed: a takeover is not repeated.
func TestTakeover(t *testing.T) {
	i := inherit(t, "keep")
	before := map[ib.PortNum]string{1: "0x8101 0x8103", 2: "0x0102 0x8101"}
	stop := i.watch(before)
	i.d = start(t, i.dir)
	eventually(t, "word of what is kept", func() (bool, string) {
		return strings.Count(i.d.lines.String(), "until a person decides: no membership explains them") == 2, i.d.lines.String()
	})
	i.d.kill()
	i.d = start(t, i.dir)
	i.d.settled(i.c)
	a := i.found(4)
	i.over()
	if missed, reads := stop(); missed != "" || reads < leastReads {
		t.Errorf("of %d reads: %s", reads, missed)
	}
	for port, keys := range before {
		i.holds("taken over", port, keys)
	}
	i.d.stop()
	i.d = start(t, i.dir)
	i.d.settled(i.c)
	for port, keys := range before {
		i.holds("started again", port, keys)
	}
	if again := i.found(4); again.Digest != a.Digest {
		t.Errorf("digest %s, want %s", again.Digest, a.Digest)
	}

	// A person decides.
	if _, err := i.c.Adoptions().End(t.Context(), a.ID, &v1.AdoptionEnd{Ports: []ib.GUID{0x200001}, PKeys: []ib.PKey{0x8103}, Confirm: 1, Reason: "nobody needs it"}); err != nil {
		t.Fatal(err)
	}
	i.holds("ended", 1, "0x8101")
	i.holds("ended", 2, before[2])
	a = i.found(3)
	kept, err := i.c.Adoptions().Confirm(t.Context(), a.ID, v1.AdoptionConfirm{Digest: a.Digest, Confirm: 3, Deadline: time.Now().Add(24 * time.Hour)})
	if err != nil || kept.State != v1.AdoptionKept {
		t.Fatalf("confirmed as %+v: %v", kept, err)
	}

	// Another manager sets the same once more: that is no takeover.
	i.d.stop()
	theirs := reign(t, i.lab.Client(), i.options)
	i.holds("of OpenSM again", 1, before[1])
	theirs.stop()
	i.d = start(t, i.dir)
	i.d.settled(i.c)
	i.holds("taken over again", 1, "0x8101")
	i.holds("taken over again", 2, before[2])
}

// TestTakeoverRemoves: with fabric.takeover remove nothing stays that no record explains, as at any later time.
func TestTakeoverRemoves(t *testing.T) {
	i := inherit(t, "remove")
	i.d = start(t, i.dir)
	i.d.settled(i.c)
	i.holds("taken over", 1, "")
	i.holds("taken over", 2, "")
	i.d.stop()
	edit(t, i.dir, map[string]string{"takeover: remove": "takeover: keep"})
	theirs := reign(t, i.lab.Client(), i.options)
	theirs.stop()
	i.d = start(t, i.dir)
	i.d.settled(i.c)
	i.holds("with keep, of a fabric that is managed", 1, "")
	if all, err := i.c.Adoptions().List(t.Context()); err != nil || len(all.Items) != 0 {
		t.Errorf("adoptions %+v, %v, want none", all, err)
	}
}
