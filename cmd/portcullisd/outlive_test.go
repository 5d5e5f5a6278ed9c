package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/api/client"
	"portcullis/api/fabric/owed"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/storage"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
	"portcullis/packaging/testenv"
)

// outliving is a service whose socket takes orders, and which may lose its store.
type outliving struct {
	*repair
	state  string
	socket *client.Client
}

func newOutliving(t *testing.T, names ...string) *outliving {
	t.Helper()
	r := &outliving{repair: newRepair(t, names...)}
	path := filepath.Join(t.TempDir(), "sm.sock")
	edit(t, r.dir, map[string]string{"    socket: \"\"\n": "    socket: " + path + "\n"})
	r.again()
	var err error
	if r.socket, err = client.New(client.Options{Socket: path}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.socket.Close)
	text, err := os.ReadFile(filepath.Join(r.dir, "portcullisd.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^state_dir: "?([^"\n]+)"?$`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("the configuration names no state directory:\n%s", text)
	}
	r.state = string(found[1])
	r.admit()
	r.settled()
	return r
}

// member returns the process of the store's member.
func (r *outliving) member() (pid int) {
	r.t.Helper()
	eventually(r.t, "a process of the store's member", func() (bool, string) {
		all, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			r.t.Fatal(err)
		}
		for _, path := range all {
			stat, err := os.ReadFile(path)
			if err != nil {
				continue // it ended
			}
			// pid (name) state parent ...
			_, rest, _ := bytes.Cut(stat, []byte(") "))
			fields := strings.Fields(string(rest))
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			if len(fields) > 1 && fields[0] != "Z" && fields[1] == strconv.Itoa(r.d.cmd.Process.Pid) && bytes.Contains(line, []byte(storage.Verb)) {
				pid, err = strconv.Atoi(filepath.Base(filepath.Dir(path)))
				return err == nil, fmt.Sprint(err)
			}
		}
		return false, "none"
	})
	return pid
}

// loseStore takes the store's directory away and kills its member, which cannot be started
// again until the store is given back.
func (r *outliving) loseStore() (giveBack func()) {
	r.t.Helper()
	dir, away := filepath.Join(r.state, "etcd"), filepath.Join(r.state, "away")
	pid := r.member()
	if err := errors.Join(os.Rename(dir, away), os.WriteFile(dir, nil, 0o600), syscall.Kill(pid, syscall.SIGKILL)); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "the loss of the store", func() (bool, string) {
		said := r.d.lines.String()
		return strings.Contains(said, "the store is away"), said
	})
	return func() {
		r.t.Helper()
		if err := errors.Join(os.Remove(dir), os.Rename(away, dir)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// tenantKeys are the P_Keys of tenants that a host's switch port holds.
func (r *outliving) tenantKeys(host string) []ib.PKey {
	at := r.list.Find(host).Ports[1]
	return ofTenants(r.fab.PKeys(at.Peer, at.PeerPort))
}

func ofTenants(keys []ib.PKey) (out []ib.PKey) {
	for _, k := range keys {
		if k.Base() != ib.DefaultPKeyLimited && k.Base() != 0 {
			out = append(out, k)
		}
	}
	return out
}

// keyless waits until a host's switch port holds no P_Key of a tenant. An adapter that is
// cut off by a fence keeps its own.
func (r *outliving) keyless(host, when string) {
	r.t.Helper()
	eventually(r.t, host+" without P_Keys of tenants "+when, func() (bool, string) {
		keys := r.tenantKeys(host)
		return len(keys) == 0, fmt.Sprint(keys)
	})
}

// watchKeys looks all the time whether a host's switch port holds a P_Key of a tenant; stop
// returns those that it held.
func (r *outliving) watchKeys(host string) (stop func() []ib.PKey) {
	ctx, cancel := context.WithCancel(r.t.Context())
	var all sync.WaitGroup
	var seen []ib.PKey
	all.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			seen = append(seen, r.tenantKeys(host)...)
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return func() []ib.PKey { cancel(); all.Wait(); return seen }
}

// recorded returns the detail of the guard that says what became of an order.
func recorded(h *v1.Host) string {
	for _, g := range h.Status.Guards {
		if g.Name == v1.GuardRecorded && !g.Met {
			return g.Detail
		}
	}
	return ""
}

// onSocket is the actor of what is ordered on the socket of the Subnet Manager.
func onSocket() string { return fmt.Sprintf("local socket, uid %d", os.Geteuid()) }

// settledOrder waits until the store has an order of actor to release a host.
func (r *outliving) settledOrder(host, actor string) {
	r.t.Helper()
	eventually(r.t, "the order about "+host+" in the store", func() (bool, string) {
		for page, err := range r.olga.Audit().Entries(r.t.Context(), v1.AuditQuery{}) {
			if err != nil {
				return false, err.Error()
			}
			for _, e := range page.Items {
				if e.Action == "host.release.ordered" && e.Object == "host/"+host {
					if e.Actor != actor || e.Code != "recorded" {
						r.t.Fatalf("audited as %+v, want it recorded, and by %s", e, actor)
					}
					return true, ""
				}
			}
		}
		return false, r.d.lines.String()
	})
	if h := phase(r.t, r.olga, host, v1.PhaseQuarantined); h.Cluster != "" {
		r.t.Errorf("%s is in cluster %s", host, h.Cluster)
	}
	eventually(r.t, "nothing owed to the store", func() (bool, string) {
		copied := r.t.TempDir()
		for i, path := range owed.Files(r.state) {
			data, err := os.ReadFile(path)
			if err != nil {
				return false, err.Error()
			}
			write(r.t, owed.Files(copied)[i], string(data))
		}
		k, err := owed.Open(copied, slog.New(slog.DiscardHandler))
		if err != nil {
			return false, err.Error() // it was being written
		}
		s := k.State()
		return s == owed.State{}, fmt.Sprintf("%+v", s)
	})
}

// TestFabricOutlivesItsStore takes the store away from a running service, permanently as far as it knows. Paths are
// answered, a lost link is healed, and hosts are taken off the fabric by the machine's socket, while nothing is granted.
// Orders are in the store once it is back, and in force throughout, also when the process is killed in between.
func TestFabricOutlivesItsStore(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "saquery")
	r := newOutliving(t, "h1", "h3", "h2", "h4")
	ctx := t.Context()
	stop := r.traffic("h1", "h3")
	giveBack := r.loseStore()

	if out, err := r.client.Diag(ctx, "h1", "saquery", "--src-to-dst", fmt.Sprintf("%d:%d", r.fab.PortInfo("h1", 1).LID, r.fab.PortInfo("h3", 1).LID), "PR"); err != nil || !bytes.Contains(out, []byte("PathRecord")) {
		t.Errorf("path record: %v\n%s", err, out)
	}
	if _, err := r.olga.Hosts().Assign(ctx, "h5", v1.Assignment{Cluster: "acme-1"}); err == nil {
		t.Error("a host is assigned without the store")
	} else if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Status != 503 {
		t.Errorf("assign without the store: %v, want 503", err)
	}
	if keys := r.tenantKeys("h2"); len(keys) == 0 {
		t.Fatal("h2 has lost its P_Keys to the loss of the store")
	}
	if sent, lost := stop(); sent == 0 || lost > 0 {
		t.Errorf("%d of %d packets between admitted hosts were lost", lost, sent)
	}
	r.heals("h1", "h3")

	h, err := r.socket.Hosts().Get(ctx, "h2")
	if err != nil || h.Cluster != "acme-1" || h.Epoch != 1 || recorded(h) == "" {
		t.Fatalf("h2 on the socket: %+v, %v", h, err)
	}
	if _, err := r.socket.Hosts().Release(client.IfMatch(ctx, "2"), "h2"); err == nil {
		t.Error("another assignment than the one that was meant is ended")
	}
	if _, err := r.olga.Hosts().Fence(client.IfMatch(ctx, "2"), "h2", v1.Fence{Reason: "noisy"}); err == nil {
		t.Error("the fence of another assignment than the one that was meant is taken")
	}
	fence := []string{"--service", "https://" + r.address, "--ca", filepath.Join(r.dir, "tls", "ca.pem"), "--token-file", filepath.Join(r.dir, "operator.token"), "host", "fence", "h2", "--reason", "noisy"}
	if out, err := exec.CommandContext(ctx, operatorProgram(t), fence...).CombinedOutput(); err == nil || !bytes.Contains(out, []byte("not done: host h2 leaves its cluster, if it is in one (the service cannot show it now: ")) {
		t.Errorf("without --yes: %v\n%s", err, out)
	}
	if out, err := exec.CommandContext(ctx, operatorProgram(t), append(fence, "--yes")...).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("the store is away")) {
		t.Fatalf("fence over HTTPS without the store: %v\n%s", err, out)
	}
	r.keyless("h2", "after the fence")
	eventually(t, "a closed port of h2", func() (bool, string) {
		at := r.list.Find("h2").Ports[1]
		state := r.fab.PortInfo(at.Peer, at.PeerPort).PortState
		return state != ib.PortActive, fmt.Sprint(state)
	})
	if _, err := r.socket.Hosts().Release(client.IfMatch(ctx, client.AnyVersion), "h9"); err == nil {
		t.Error("a host that is not known is released")
	}
	if _, err := r.olga.Hosts().Assign(ctx, "h2", v1.Assignment{Cluster: "acme-1"}); err == nil {
		t.Error("a fenced host is assigned without the store")
	}

	// The process is killed before the store is back.
	watch := r.watchKeys("h2")
	r.d.kill()
	giveBack()
	r.d = start(t, r.dir)
	r.settledOrder("h2", "operator") // by HTTPS
	r.settled()
	if keys := watch(); len(keys) > 0 {
		t.Errorf("h2 had the P_Keys %v again", keys)
	}
	phase(t, r.olga, "h1", v1.PhaseAdmitted)

	// The store comes back to a process that runs on; then that is started again.
	giveBack = r.loseStore()
	if h, err = r.socket.Hosts().Release(client.IfMatch(ctx, client.AnyVersion), "h4"); err != nil || !strings.Contains(recorded(h), "in the journal") {
		t.Fatalf("release: %+v, %v; want it in the journal", h, err)
	}
	r.keyless("h4", "after the release")
	eventually(t, "an adapter of h4 without P_Keys of tenants", func() (bool, string) {
		keys := ofTenants(r.fab.PKeys("h4", 1))
		return len(keys) == 0, fmt.Sprint(keys)
	})
	watch = r.watchKeys("h4")
	giveBack()
	r.settledOrder("h4", onSocket())
	r.again()
	r.settled()
	phase(t, r.olga, "h4", v1.PhaseQuarantined)
	if keys := watch(); len(keys) > 0 {
		t.Errorf("h4 had the P_Keys %v again", keys)
	}
	for _, name := range []string{"h1", "h3"} {
		phase(t, r.olga, name, v1.PhaseAdmitted)
		if keys := append(r.tenantKeys(name), ofTenants(r.fab.PKeys(name, 1))...); len(keys) != 2 {
			t.Errorf("%s holds %v, want its P_Key in switch port and adapter", name, keys)
		}
	}
}

// heals takes the link from one host's switch that the path to another uses, and puts it
// back: the path is another one, and the link is Active again.
func (r *outliving) heals(from, to string) {
	r.t.Helper()
	leaf, lid := r.list.Find(from).Ports[1].Peer, r.fab.PortInfo(to, 1).LID
	out := r.fab.Egress(leaf, lid)
	peer, ok := r.fab.Cable(leaf, out)
	if !ok || peer.Node == to {
		r.t.Fatalf("%s and %s are on one switch", from, to)
	}
	if err := r.fab.Unlink(leaf, out); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "another path", func() (bool, string) {
		now := r.fab.Egress(leaf, lid)
		return now != out && r.delivers(from, to), fmt.Sprintf("port %d, was %d", now, out)
	})
	if err := r.fab.Relink(leaf, out, peer.Node, peer.Port); err != nil {
		r.t.Fatal(err)
	}
	eventually(r.t, "the link in use again", func() (bool, string) {
		state := r.fab.PortInfo(leaf, out).PortState
		return state == ib.PortActive && r.delivers(from, to), fmt.Sprint(state)
	})
}

// delivers reports whether a packet of the tenant reaches one host from another.
func (r *outliving) delivers(from, to string) bool {
	for _, k := range ofTenants(r.fab.PKeys(from, 1)) {
		d := sim.Data{SLID: r.fab.PortInfo(from, 1).LID, DLID: r.fab.PortInfo(to, 1).LID, PKey: k.Full(), DestQP: 2, Payload: 64}
		rep, err := r.fab.Inject(sim.Endpoint{Node: from, Port: 1}, d)
		return err == nil && len(rep.To) == 1 && rep.To[0] == sim.Endpoint{Node: to, Port: 1}
	}
	return false
}

// TestFenceOnAFullDisk: no space is left on the disk of the state directory and the store hangs. A fence is carried out and
// in the journal, whose space was taken before. A process that is killed then does not restore the P_Keys. Without the
// journal a fence is carried out too.
func TestFenceOnAFullDisk(t *testing.T) {
	t.Parallel()
	r := newOutliving(t, "h1", "h2")
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=400m,mode=0700"); err != nil {
		testenv.Need(t, fmt.Errorf("a file system of its own, which root may mount: %w", err))
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	r.d.stop()
	moved := filepath.Join(disk, "state")
	if err := os.CopyFS(moved, os.DirFS(r.state)); err != nil {
		t.Fatal(err)
	}
	if err := filepath.WalkDir(moved, func(path string, d os.DirEntry, err error) error {
		mode := os.FileMode(0o600)
		if d.IsDir() {
			mode = 0o700
		}
		return errors.Join(err, os.Chmod(path, mode))
	}); err != nil {
		t.Fatal(err)
	}
	edit(t, r.dir, map[string]string{r.state: moved})
	r.state = moved
	r.d = start(t, r.dir)
	r.settled()
	phase(t, r.olga, "h2", v1.PhaseAdmitted)

	filler, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = filler.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	pid := r.member()
	testenv.Halt(t, pid)
	h, err := r.socket.Hosts().Fence(t.Context(), "h2", v1.Fence{Reason: "noisy"})
	if err != nil || !strings.Contains(recorded(h), "in the journal") {
		t.Fatalf("fence: %+v, %v; want it in the journal", h, err)
	}
	r.keyless("h2", "after the fence")
	watch := r.watchKeys("h2")
	r.d.kill()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
	if err := errors.Join(filler.Close(), os.Remove(filler.Name())); err != nil {
		t.Fatal(err)
	}
	r.d = start(t, r.dir)
	r.settledOrder("h2", onSocket())
	r.settled()
	if keys := watch(); len(keys) > 0 {
		t.Errorf("h2 had the P_Keys %v again", keys)
	}
	phase(t, r.olga, "h1", v1.PhaseAdmitted)

	// Where the journal cannot be written either, the order is carried out all the same, and
	// the answer says so.
	for _, path := range owed.Files(r.state) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	giveBack := r.loseStore()
	if h, err = r.socket.Hosts().Fence(t.Context(), "h1", v1.Fence{Reason: "noisy"}); err != nil || !strings.Contains(recorded(h), "memory of this process alone") {
		t.Fatalf("fence: %+v, %v; want it in memory alone", h, err)
	}
	r.keyless("h1", "after the fence")
	giveBack()
	r.settledOrder("h1", onSocket())
}
