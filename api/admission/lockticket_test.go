package admission

import (
	"context"
	"errors"
	"testing"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/fabricsm/ib"
)

// keeper knows one epoch for all adapters.
type keeper struct {
	epoch   uint64
	judge   *attest.Refusal
	proven  int
	looked  []string
	draws   bool
	version string
}

func (k *keeper) Expect(_ context.Context, _ store.Reader, host *inventory.Host) (map[ib.GUID]attest.ExpectedLock, error) {
	out := map[ib.GUID]attest.ExpectedLock{}
	for _, h := range host.HCAs {
		out[h.NodeGUID] = attest.ExpectedLock{Epoch: k.epoch}
	}
	return out, nil
}

func (k *keeper) Judge(*attest.Statement) *attest.Refusal { return k.judge }

func (k *keeper) Version() string { return k.version }

func (k *keeper) Look(_ context.Context, _ *store.Tx, st *attest.Statement) error {
	k.looked = append(k.looked, st.Host)
	return nil
}

func (k *keeper) Prove(context.Context, *store.Tx, *attest.Statement) error {
	k.proven++
	return nil
}

func (k *keeper) Draws() bool { return k.draws }

// attested has a host that was assigned send evidence of its statement.
func (l *lab) attested(host string) (*v1.AttestResult, error) {
	h := l.hosts[host]
	h.Boot.Reset++
	empty(h)
	h.Statement.CollectedAt = l.clock
	req := h.Request()
	req.Locks = !l.cannotLock
	ses, err := l.svc.OpenSession(l.ctx(), req, "192.0.2.1")
	if err != nil {
		return nil, err
	}
	return l.svc.SubmitEvidence(l.ctx(), ses.ID, l.channel, l.answer(host, ses))
}

func newLockLab(t *testing.T, k *keeper) *lab {
	l := newLab(t, member.Open(t))
	l.options = func(o *Options) { o.Locks = k }
	l.restart()
	l.addHosts(1)
	l.tenantWithClusters("c1")
	if _, err := l.svc.Assign(l.ctx(), "alice", "host-1", v1.Assignment{Cluster: "c1"}); err != nil {
		t.Fatal(err)
	}
	return l
}

// newReopenedLab has a host that was handed over with locked adapters, which are open
// since.
func newReopenedLab(t *testing.T) *lab {
	l := newLockLab(t, &keeper{epoch: 1})
	for i := range l.hosts["host-1"].Statement.HCAs {
		l.hosts["host-1"].Statement.HCAs[i].Lock.Epoch = 1
	}
	if _, err := l.attest("host-1"); err != nil {
		t.Fatal(err)
	}
	unlocked(l.hosts["host-1"])
	return l
}

// program has the fabric show a host where it is cabled, and do what is granted.
func (l *lab) program(host string) {
	l.t.Helper()
	l.fabric.place(l.t, l.ports(host)...)
	l.settle()
	l.fabric.program(l.t)
	l.settle()
}

func (l *lab) use(ticket string) (used *attestation.LockTicket, err error) {
	_, err = l.store.Update(l.ctx(), func(tx *store.Tx) (err error) {
		used, err = attestation.UseLockTicket(l.ctx(), tx, ticket, l.svc.now())
		return err
	})
	return used, err
}

func unlocked(h *attesttest.Host) {
	for i := range h.Statement.HCAs {
		h.Statement.HCAs[i].Lock = attest.Lock{Method: attest.LockNone, MLOCK: attest.MLOCKUnlocked, Items: []attest.Item{}}
	}
}

// Evidence that lacks nothing but locks earns a ticket, once and for a while, and
// nothing else.
func TestLockTicket(t *testing.T) {
	k := &keeper{epoch: 1}
	l := newLockLab(t, k)
	unlocked(l.hosts["host-1"])
	r, err := l.attested("host-1")
	if len(k.looked) != 1 || k.looked[0] != "host-1" {
		t.Errorf("what evidence shows of locks was looked at for %v", k.looked)
	}
	if err != nil || r.LockTicket == "" || r.Seal != nil || r.StatusToken != "" || r.Phase != v1.PhaseAwaiting {
		t.Fatalf("%+v, %v", r, err)
	}
	if h := l.host("host-1"); h.Status.Phase != v1.PhaseAwaiting || !h.Status.Attested.IsZero() {
		t.Errorf("the host counts as attested: %+v", h.Status)
	}
	h := &l.hosts["host-1"].Statement.HCAs[0]
	want := attestation.AttestedAdapter{NodeGUID: h.NodeGUID, PSID: h.PSID, BaseMAC: h.BaseMAC}
	if used, err := l.use(r.LockTicket); err != nil || used.Host.ID != "host-1" || used.Adapters[0] != want || want.PSID == "" || want.BaseMAC == "" {
		t.Errorf("used: %+v, %v", used, err)
	}
	if _, err := l.use(r.LockTicket); !refusal.IsKind(err, refusal.Refused) {
		t.Errorf("used twice: %v", err)
	}
	if r.DrawChallenges {
		t.Error("adapters shall draw, and nothing is signed")
	}
	k.draws = true
	again, err := l.attested("host-1")
	if err != nil || !again.DrawChallenges {
		t.Fatalf("%+v, %v", again, err)
	}
	l.clock = l.clock.Add(5 * time.Minute)
	if _, err := l.use(again.LockTicket); !refusal.IsKind(err, refusal.Refused) {
		t.Errorf("used late: %v", err)
	}
}

// A host that was handed over and shows open adapters in a later boot, which get orders,
// is not admitted on what it showed before.
func TestLockTicketEndsEarlierEvidence(t *testing.T) {
	l := newReopenedLab(t)
	r, err := l.attested("host-1")
	if err != nil || r.LockTicket == "" {
		t.Fatalf("%+v, %v", r, err)
	}
	l.program("host-1")
	if st := l.host("host-1").Status; st.Phase != v1.PhaseAwaiting || !st.Attested.IsZero() {
		t.Errorf("with open adapters the host is %s, attested %v", st.Phase, st.Attested)
	}
	if _, err := l.use(r.LockTicket); err != nil {
		t.Errorf("its ticket: %v", err)
	}
}

// Nor is one that gets no ticket, because its agent says that it cannot lock.
func TestOpenAdaptersEndEarlierEvidence(t *testing.T) {
	l := newReopenedLab(t)
	l.cannotLock = true
	_, err := l.attested("host-1")
	wantRefusal(t, err, attest.ReasonLock)
	l.program("host-1")
	if st := l.host("host-1").Status; st.Phase != v1.PhaseAwaiting || !st.Attested.IsZero() || st.LastDenial == nil {
		t.Errorf("with open adapters the host is %s, attested %v, refused %v", st.Phase, st.Attested, st.LastDenial)
	}
}

// A ticket is of one assignment.
func TestLockTicketOfEarlierAssignment(t *testing.T) {
	l := newLockLab(t, &keeper{epoch: 1})
	unlocked(l.hosts["host-1"])
	r, err := l.attested("host-1")
	if err != nil {
		t.Fatal(err)
	}
	l.clock = l.clock.Add(time.Second)
	if _, err := l.svc.Release(l.ctx(), "alice", "host-1"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.use(r.LockTicket); !refusal.IsKind(err, refusal.Refused) {
		t.Errorf("after release: %v", err)
	}
}

// Locked under the key that was given out, and with settings as the site wants
// them, evidence is accepted, and the locks are noted as shown.
func TestLocked(t *testing.T) {
	k := &keeper{}
	l := newLockLab(t, k)
	k.epoch = l.hosts["host-1"].Statement.HCAs[0].Lock.Epoch
	if r, err := l.attested("host-1"); err != nil || r.LockTicket != "" || r.Seal == nil || k.proven != 1 {
		t.Fatalf("%+v, %v, %d times proven", r, err, k.proven)
	}
}

// Under another key, or with other settings, it must be locked again.
func TestLockedOtherwise(t *testing.T) {
	k := &keeper{epoch: 99}
	l := newLockLab(t, k)
	if r, err := l.attested("host-1"); err != nil || r.LockTicket == "" || r.Seal != nil {
		t.Errorf("another epoch: %+v, %v", r, err)
	}
	k.epoch, k.judge = l.hosts["host-1"].Statement.HCAs[0].Lock.Epoch, &attest.Refusal{Code: attest.ReasonLock, Detail: "SM_DISABLE"}
	if r, err := l.attested("host-1"); err != nil || r.LockTicket == "" || r.Seal != nil || k.proven != 0 {
		t.Errorf("other settings: %+v, %v", r, err)
	}
}

// Any other fault is refused, without a ticket: keys are for hosts whose boot is the provider's.
func TestNoTicket(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*lab)
		want   attest.Reason
	}{
		{"another host's adapters", func(l *lab) { l.hosts["host-1"].Statement.HCAs[0].NodeGUID++ }, attest.ReasonGUIDMismatch},
		{"another agent", func(l *lab) {
			l.policy.Starts = []attest.Start{{Agent: "9.9.9", Image: "other"}}
			l.restart()
		}, attest.ReasonStart},
		{"an agent that cannot lock", func(l *lab) { l.cannotLock = true }, attest.ReasonLock},
		{"no locks in this service", func(l *lab) { l.options = nil; l.restart() }, attest.ReasonLock},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := newLockLab(t, &keeper{epoch: 1})
			unlocked(l.hosts["host-1"])
			tt.change(l)
			r, err := l.attested("host-1")
			var no *attest.Refusal
			if !errors.As(err, &no) || no.Code != tt.want || r != nil {
				t.Errorf("%+v, %v; want a refusal %q", r, err, tt.want)
			}
		})
	}
}
