package api_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/agent"
	"portcullis/agent/hca/hcasim"
	"portcullis/agent/hca/hcasim/cardsocket"
	"portcullis/agent/hca/register"
	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/admission/admissiontest"
	"portcullis/api/apitest"
	"portcullis/api/events"
	"portcullis/api/locks"
	"portcullis/api/locks/lockkey"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
)

const (
	lockedNode = ib.GUID(0x0002_c903_00ac_0000)
	lockedPort = lockedNode + 1
)

// lockSite is a whole way: the agent with a software TPM and a simulated adapter,
// and the service with admission and locks.
type lockSite struct {
	t       *testing.T
	dev     *tpmtest.TPM
	card    *hcasim.Card
	service *admissiontest.Site // that expects the host "locker"
	keeper  *locks.Service
	config  agent.Config
	events  events.Book
}

func newLockSite(t *testing.T, signed bool) *lockSite {
	t.Helper()
	return newBoundSite(t, signed, 0, hcasim.Traits{})
}

// newBoundSite binds files to something at least, on an adapter with traits.
func newBoundSite(t *testing.T, signed bool, least locks.Binding, traits hcasim.Traits) *lockSite {
	t.Helper()
	s := &lockSite{t: t, dev: tpmtest.New(t, tpmtest.Options{P256: true})}
	o := hcasim.ConnectX7(lockedNode, lockedPort)
	k := nvconfigtest.Pinned(t, 2048)
	o.Keys = append(o.Keys, hcasim.Key{UUID: k.UUID, Public: k.Public, Signs: hcasim.SignsOEM})
	o.Traits = traits
	s.card = hcasim.New(o)
	secret := sha256.Sum256([]byte("a secret of tests"))
	root, err := lockkey.NewRoot(secret[:])
	fatal(t, err)
	lo := locks.Options{Root: root, Binding: least}
	if signed {
		lo.Signer, lo.Key = nvconfigtest.Key(t, 2048), k.UUID
	}
	s.service = admissiontest.NewWith(t, admissiontest.Host{ID: "locker", TPM: s.dev, Node: lockedNode}, func(o *admission.Options) {
		lo.Store = o.Store
		s.keeper, err = locks.New(lo)
		fatal(t, err)
		o.Locks = s.keeper
	})
	s.events = events.Book{Store: s.service.Store}
	s.serve()
	return s
}

// serve starts the API, the adapter's socket and the kernel's trees of the host.
func (s *lockSite) serve() {
	t := s.t
	t.Helper()
	server := apitest.Start(t, apitest.Real{Service: s.service.Service()}, func(o *api.Options) { o.Locks = s.keeper })
	dir, err := os.MkdirTemp("", "cards") // short: a socket's path has 107 bytes at most
	fatal(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	ctx, stop := context.WithCancel(context.Background())
	l, err := cardsocket.Listen(ctx, filepath.Join(dir, lockedNode.String()))
	fatal(t, err)
	done := make(chan error, 1)
	go func() { done <- cardsocket.Serve(ctx, l, s.card) }()
	t.Cleanup(func() { stop(); fatal(t, <-done) })
	work := t.TempDir()
	plantHost(t, work, lockedNode, s.dev)
	s.config = agent.DefaultConfig()
	s.config.Service, s.config.CA, s.config.Host = server.URL, server.CAFile, "locker"
	s.config.TPM, s.config.FWCTL, s.config.VendorTools = s.dev.Device(), "unix:"+dir, false
	s.config.Sysfs, s.config.Procfs, s.config.StateDir = filepath.Join(work, "sys"), filepath.Join(work, "proc"), filepath.Join(work, "state")
	s.config.Timeout = 5 * time.Minute
}

// provision runs the agent until it ends, or the host is handed over: no fabric
// admits it here.
func (s *lockSite) provision() error { return s.goTo(agent.Admitted) }

// goTo runs the agent to a goal.
func (s *lockSite) goTo(goal agent.Goal) error {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- agent.Provision(ctx, agent.Options{Config: s.config, Version: "1.2.3", Log: slog.New(slog.DiscardHandler), Goal: goal})
	}()
	for {
		select {
		case err := <-ended:
			return err
		case <-time.After(20 * time.Millisecond):
		}
		if h := s.host(); !h.Status.Sealed.IsZero() {
			cancel()
			<-ended
			return nil
		}
	}
}

func (s *lockSite) host() *v1.Host { s.t.Helper(); return s.service.Host("locker") }

func (s *lockSite) lock() *v1.Lock {
	s.t.Helper()
	l, err := s.keeper.Show(s.t.Context(), lockedNode)
	fatal(s.t, err)
	return l
}

// told returns the events of a type: the source of each, and the cause.
func (s *lockSite) told(kind string) (out []string) {
	s.t.Helper()
	all, err := s.events.List(s.t.Context(), v1.EventQuery{Type: kind})
	fatal(s.t, err)
	for _, e := range all.Items {
		out = append(out, e.By+" "+e.Cause)
	}
	return out
}

// comesBack has the host released, booted and assigned again.
func (s *lockSite) comesBack() {
	s.t.Helper()
	s.service.Release("locker")
	fatal(s.t, s.dev.PowerCycle(s.t.Context()))
	fatal(s.t, os.RemoveAll(s.config.StateDir))
	s.service.Assign("locker")
}

// T93: an adapter that comes back open without an order makes an event, by evidence; one that comes back as it was makes
// none.
func TestAdapterThatComesBackOpen(t *testing.T) {
	t.Parallel()
	s := newLockSite(t, false)
	fatal(t, s.provision())
	s.comesBack()
	fatal(t, s.provision())
	if changed, relocked := s.told(events.LockChanged), s.told(events.LockRelocked); len(changed) != 0 || len(relocked) != 1 {
		t.Fatalf("nothing was done to it: told %v, relocked %v", changed, relocked)
	}
	s.comesBack()
	s.card.LockAs(register.Unlocked, ib.NewLockKey(0))
	fatal(t, s.provision())
	if got := s.told(events.LockChanged); len(got) != 1 || got[0] != "evidence unlocked" {
		t.Errorf("told %v", got)
	}
	if s.card.LockState() != register.Locked || s.lock().State != "proven" {
		t.Errorf("it is not locked again: card %v, lock %+v", s.card.LockState(), s.lock())
	}
}

// A host with a card out of its box is attested, locked as the service orders,
// attested with it, and handed over; the next time it is opened with the last key
// and locked with the next.
func TestProvisionLocks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		signed bool
	}{{"signed file", true}, {"plain writes", false}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newLockSite(t, tt.signed)
			if err := s.provision(); err != nil {
				t.Fatalf("%v; host %+v", err, s.host().Status)
			}
			if s.card.LockState() != register.Locked || !s.card.SMPFirewall() {
				t.Errorf("the card is %v, firewall %t", s.card.LockState(), s.card.SMPFirewall())
			}
			first := s.lock()
			if first.State != "proven" || first.Epoch != 1 || (first.File != "") != tt.signed {
				t.Errorf("lock %+v", first)
			}
			s.bound(first, tt.signed, v1.BoundChallenge)
			// The host comes back.
			s.comesBack()
			if err := s.provision(); err != nil {
				t.Fatalf("again: %v; host %+v", err, s.host().Status)
			}
			if l := s.lock(); l.State != "proven" || l.Epoch < 2 || s.card.LockState() != register.Locked {
				t.Errorf("again: lock %+v, card %v", l, s.card.LockState())
			} else if s.bound(l, tt.signed, v1.BoundChallenge); tt.signed && l.Bound.Challenge == first.Bound.Challenge {
				t.Error("again: a file for the same challenge")
			}
		})
	}
}

// bound checks what the file of a lock is bound to.
func (s *lockSite) bound(l *v1.Lock, signed bool, to string) {
	s.t.Helper()
	switch {
	case !signed:
		if l.Bound != nil {
			s.t.Errorf("nothing is signed, and bound to %+v", l.Bound)
		}
	case l.Bound == nil || l.Bound.To != to:
		s.t.Errorf("bound to %+v, want to the %s", l.Bound, to)
	}
}

// A file is bound to as much as the firmware takes, and to no less than the site says;
// an adapter that can be held to less is not locked, and its host not handed over.
func TestProvisionBinds(t *testing.T) {
	t.Parallel()
	none, neither := hcasim.Traits{NoChallenges: true}, hcasim.Traits{RefusesBound: true, RefusesDevice: true}
	all := []struct {
		name   string
		least  locks.Binding
		traits hcasim.Traits
		to     string // "": refused
		want   string
	}{
		{"draws nothing, and must", locks.BoundChallenge, none, "", "can be held to its device alone"},
		{"draws nothing, and need not", locks.BoundDevice, none, v1.BoundDevice, "MTCQ"},
		{"takes no bound file, and must", locks.BoundChallenge, hcasim.Traits{RefusesBound: true}, "", "refused a file that is bound to its challenge"},
		{"takes no bound file, and need not", locks.BoundDevice, hcasim.Traits{RefusesBound: true}, v1.BoundDevice, "bound to its challenge: bad format"},
		{"takes files for its board alone, and may not", locks.BoundDevice, neither, "", "refused a file that is bound to its device"},
		{"takes files for its board alone, and may", locks.BoundBoard, neither, v1.BoundBoard, "bound to its device: not for this device"},
		{"heeds nothing", locks.BoundChallenge, hcasim.Traits{IgnoresChallenges: true, KeepsChallenge: true}, v1.BoundChallenge, ""},
	}
	if testing.Short() {
		all = all[:2] // the race detector makes each ten times as slow, and their goroutines are the same
	}
	for _, tt := range all {
		t.Run(tt.name, func(t *testing.T) {
			s := newBoundSite(t, true, tt.least, tt.traits)
			err := s.provision()
			if tt.to == "" {
				h := s.host().Status
				if agent.ClassOf(err) != agent.ClassRefused || !h.Sealed.IsZero() || s.card.LockState() != register.Unlocked {
					t.Errorf("%v (class %d), card %v, handed over %v", err, agent.ClassOf(err), s.card.LockState(), h.Sealed)
				}
				if d := h.LastDenial; d == nil || d.Code != "lock_binding" || !strings.Contains(d.Detail, tt.want) {
					t.Errorf("operators are told %+v, want %q", d, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v; host %+v", err, s.host().Status)
			}
			if l := s.lock(); l.State != "proven" || l.Bound == nil || l.Bound.To != tt.to || !strings.Contains(l.Bound.Less, tt.want) {
				t.Errorf("lock %+v, bound to %+v", l, l.Bound)
			}
		})
	}
}

// An adapter that another party locked, one that does not know the SMP firewall, and one that leaves: each ends the run
// with its own reason, and no host is handed over.
func TestProvisionDoesNotLock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		setUp func(*lockSite)
		want  string
		event string // that the service reports, by the host's word
	}{
		{"locked by somebody else", func(s *lockSite) { s.card.LockAs(register.Locked, ib.NewLockKey(77)) }, "lock.foreign", events.LockUnlockFailed},
		{"without SMP firewall", func(s *lockSite) { s.card.Forget(nvconfig.GlobalItem(290)) }, "lock.refused", events.LockFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newLockSite(t, false)
			tt.setUp(s)
			err := s.provision()
			if agent.ClassOf(err) != agent.ClassLock || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v (class %d), want class %d with %q", err, agent.ClassOf(err), agent.ClassLock, tt.want)
			}
			if h := s.host(); !h.Status.Sealed.IsZero() {
				t.Error("the host was handed over")
			}
			if got := s.told(tt.event); len(got) != 1 || got[0] != "host "+strings.TrimPrefix(tt.want, "lock.") {
				t.Errorf("told %v", got)
			}
		})
	}
}

// An adapter that leaves is opened, and stays open.
func TestProvisionOpens(t *testing.T) {
	t.Parallel()
	s := newLockSite(t, false)
	if err := s.provision(); err != nil {
		t.Fatal(err)
	}
	s.service.Release("locker")
	_, err := s.keeper.Release(t.Context(), "alice", lockedNode, v1.LockRelease{Reason: "RMA 17"})
	fatal(t, err)
	fatal(t, s.dev.PowerCycle(t.Context()))
	s.service.Assign("locker")
	err = s.provision()
	if agent.ClassOf(err) != agent.ClassLock || !strings.Contains(fmt.Sprint(err), "leaves by decision") {
		t.Errorf("provision: %v", err)
	}
	if err := s.goTo(agent.Opened); err != nil {
		t.Errorf("unlock: %v", err)
	}
	if s.card.LockState() != register.Unlocked {
		t.Errorf("the card is %v", s.card.LockState())
	}
	var no *attest.Refusal
	if errors.As(err, &no) {
		t.Error("an adapter that leaves is no refusal of evidence")
	}
}

// Each command goes its part of the way.
func TestGoals(t *testing.T) {
	t.Parallel()
	s := newLockSite(t, false)
	if err := s.goTo(agent.Attested); agent.ClassOf(err) != agent.ClassRefused || s.card.LockState() != register.Unlocked {
		t.Errorf("evidence, before anything is locked: %v, card %v", err, s.card.LockState())
	}
	if err := s.goTo(agent.Opened); agent.ClassOf(err) != agent.ClassLock || !strings.Contains(fmt.Sprint(err), "no adapter of host locker leaves") {
		t.Errorf("unlock, with nothing that leaves: %v", err)
	}
	if err := s.goTo(agent.Locked); err != nil || s.card.LockState() != register.Locked {
		t.Errorf("lock: %v, card %v", err, s.card.LockState())
	}
	if err := s.goTo(agent.Attested); err != nil || !s.host().Status.Sealed.IsZero() {
		t.Errorf("evidence, when all is locked: %v", err)
	}
	if err := s.goTo(agent.HandedOver); err != nil || s.host().Status.Sealed.IsZero() {
		t.Errorf("handover: %v", err)
	}
}
