package attestation

import (
	"context"
	"errors"
	"slices"
	"time"

	"portcullis/api/attestation/session"
	"portcullis/api/audit"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// Locks knows how adapters are locked. Package api/locks implements it.
type Locks interface {
	// Expect returns what the lock of each adapter of a host must be.
	Expect(ctx context.Context, r store.Reader, host *inventory.Host) (map[ib.GUID]attest.ExpectedLock, error)
	// Judge compares the settings of a statement with the site's profile; nil: as wanted.
	Judge(s *attest.Statement) *attest.Refusal
	// Look records in tx what evidence that was not accepted shows of the locks of a statement, and reports each lock that
	// differs from its last proof. It grants nothing.
	Look(ctx context.Context, tx *store.Tx, s *attest.Statement) error
	// Version names the profile and how settings are kept: what Judge depends on.
	Version() string
	// Prove notes in tx that evidence showed the locks of a statement.
	Prove(ctx context.Context, tx *store.Tx, s *attest.Statement) error
	// Draws reports whether adapters shall draw challenges, for files that are bound to them.
	Draws() bool
}

// ticketLife is how long a ticket is good for. Locking begins at once.
const ticketLife = 5 * time.Minute

// ticketRecord is what evidence of a boot earned: orders for the adapters of the
// host, once.
type ticketRecord struct {
	Host    string    `json:"host"`
	Epoch   int64     `json:"epoch"` // assignment it belongs to
	Expires time.Time `json:"expires"`
	// Adapters are those of the evidence.
	Adapters []AttestedAdapter `json:"adapters"`
}

// AttestedAdapter is an adapter as the agent of a proven boot read it.
type AttestedAdapter struct {
	NodeGUID ib.GUID `json:"node_guid"`
	PSID     string  `json:"psid"`     // "": it could not be read
	BaseMAC  string  `json:"base_mac"` // of manufacture, 12 lower-case hexadecimal digits; "": it could not be read
}

// LockTicket is a ticket that was used.
type LockTicket struct {
	Host     *inventory.Host // as inventory has it now
	Adapters []AttestedAdapter
}

func adaptersOf(s *attest.Statement) (out []AttestedAdapter) {
	for i := range s.HCAs {
		out = append(out, AttestedAdapter{NodeGUID: s.HCAs[i].NodeGUID, PSID: s.HCAs[i].PSID, BaseMAC: s.HCAs[i].BaseMAC})
	}
	return out
}

func lockTickets() store.Collection[ticketRecord] {
	return store.NewCollection[ticketRecord]("lock-tickets", 1)
}

// verify judges evidence, and the settings in it by the site's profile. It also returns when the host asked, and how long each part took.
func (s *Service) verify(ses session.Session, channel []byte, ev *attest.Evidence, exp attest.Expected) (attest.Verdict, hostrecord.Course) {
	c := hostrecord.Course{Asked: ses.Challenge.Issued, Began: s.now()}
	last := c.Began
	v := attest.VerifyInParts(c.Began, ses.Challenge, channel, ev, exp, s.o.Policy, func(p attest.Part) {
		now := s.now()
		c.Parts, last = append(c.Parts, hostrecord.Took{Part: p, Time: now.Sub(last)}), now
	})
	v.Facts.Session = session.Number(v.Facts.Session)
	s.o.Judge.Review(&v)
	if !v.OK || s.o.Locks == nil || !s.o.Policy.RequireLock {
		return v, c
	}
	if no := s.o.Locks.Judge(v.Facts.Statement); no != nil {
		v.OK, v.Code, v.Detail = false, no.Code, no.Detail
	}
	c.Parts = append(c.Parts, hostrecord.Took{Part: partSettings, Time: s.now().Sub(last)})
	return v, c
}

// partSettings is the part of evidence that this package judges: settings of adapters by the site's profile.
const partSettings attest.Part = "settings"

// aboutAdapters reports whether evidence was refused for what its adapters are, where host, boot and inventory were right.
func aboutAdapters(v *attest.Verdict) bool {
	return !v.OK && v.Facts.Statement != nil &&
		slices.Contains([]attest.Reason{attest.ReasonLock, attest.ReasonUnread, attest.ReasonFirmware, attest.ReasonDebug, attest.ReasonDPU}, v.Code)
}

// lookAtLocks has what refused evidence shows of locks be compared with what was
// proven, where host, boot and inventory were right. That it cannot be noted does not
// make the answer a different one.
func (s *Service) lookAtLocks(ctx context.Context, v *attest.Verdict) {
	if s.o.Locks == nil || !aboutAdapters(v) {
		return
	}
	if err := s.update(ctx, func(tx *store.Tx) error { return s.o.Locks.Look(ctx, tx, v.Facts.Statement) }); err != nil {
		s.o.Log.Error("what evidence shows of locks could not be noted", "host", v.Facts.Host, "err", err)
	}
}

// lockFirst returns a ticket for evidence that shows the right host and boot and no more. Little can be known of a locked
// adapter before it is open, and only evidence of one that was locked counts. "" means that there is nothing to lock, or
// that it would not help.
func (s *Service) lockFirst(ctx context.Context, ses session.Session, v *attest.Verdict, channel []byte, ev *attest.Evidence, exp attest.Expected) (string, error) {
	if v.OK || !ses.Locks || s.o.Locks == nil || !s.o.Policy.RequireLock || v.Code != attest.ReasonLock && v.Code != attest.ReasonUnread {
		return "", nil
	}
	booted := attest.Verify(s.now(), ses.Challenge, channel, ev, exp, s.o.Policy.BeforeLock())
	booted.Facts.Session = session.Number(booted.Facts.Session)
	if !booted.OK {
		return "", nil
	}
	ticket, err := s.ticket(ctx, ses, &booted, v.Detail)
	if _, refused := errors.AsType[*attest.Refusal](err); refused {
		return "", nil // as the verdict says
	}
	return ticket, err
}

// proveLocks notes in tx what accepted evidence showed of locks.
func (s *Service) proveLocks(ctx context.Context, tx *store.Tx, v *attest.Verdict) error {
	if s.o.Locks == nil || !s.o.Policy.RequireLock {
		return nil
	}
	return s.o.Locks.Prove(ctx, tx, v.Facts.Statement)
}

// expect returns what inventory, reference values and locks say of a host.
func (s *Service) expect(ctx context.Context, r store.Reader, host *inventory.Host) (attest.Expected, error) {
	e := expected(host)
	var err error
	if e.References, err = ReferencesOf(ctx, r, e.Class); err != nil || s.o.Locks == nil {
		return e, err
	}
	of, err := s.o.Locks.Expect(ctx, r, host)
	if err != nil {
		return e, err
	}
	for i := range e.HCAs {
		e.HCAs[i].Lock = of[e.HCAs[i].NodeGUID]
	}
	return e, nil
}

// ticket creates a ticket for a host whose boot was proven. why is what its adapters lack. Evidence that was accepted
// before counts no more: its adapters are not as it says, and must be opened and locked again.
func (s *Service) ticket(ctx context.Context, ses session.Session, v *attest.Verdict, why string) (string, error) {
	token, err := s.newToken()
	if err != nil {
		return "", err
	}
	lease, err := s.o.Store.NewLease(ctx, ticketLife+time.Minute) // only cleans up
	if err != nil {
		return "", refusal.Explain(err)
	}
	err = s.update(ctx, func(tx *store.Tx) error {
		f, err := s.read(ctx, tx, ses.Host)
		if err != nil {
			return err
		}
		if f.rec.Epoch != ses.Epoch {
			return &attest.Refusal{Code: ReasonChanged, Detail: "the assignment of the host changed during the session"}
		}
		if why := f.rec.WindowClosed(f.now); why != "" {
			return &attest.Refusal{Code: ReasonWindow, Detail: why}
		}
		if len(f.rec.Conflicts) > 0 {
			return &attest.Refusal{Code: ReasonConflict, Detail: f.rec.Conflicts[0].Explain(ses.Host)}
		}
		history, err := store.Optional(Boots().Get(ctx, tx, v.Facts.EKDigest))
		if err != nil {
			return err
		}
		if no := history.Check(v.Facts.Boot); no != nil {
			return no
		}
		spent := ""
		if f.rec.Evidence != nil {
			spent = "; evidence of session " + f.rec.Evidence.Session + " counts no more"
			f.rec.Unseal(tx)
			if err := errors.Join(DropEvidence(ctx, tx, f.now, ses.Host, &f.rec), hostrecord.Records().Put(tx, ses.Host, f.rec)); err != nil {
				return err
			}
		}
		if err := errors.Join(
			lockTickets().PutLeased(tx, hashToken(token), ticketRecord{
				Host: ses.Host, Epoch: ses.Epoch, Expires: f.now.Add(ticketLife), Adapters: adaptersOf(v.Facts.Statement),
			}, lease),
			s.log(ctx, tx, &audit.Change{
				Actor: "agent:" + ses.Host, Action: "lock.ticket", Object: "host/" + ses.Host, Code: "ok",
				Detail: "session " + v.Facts.Session + " proves host and boot; adapters are to be locked: " + why + spent,
			}),
		); err != nil || spent == "" {
			return err
		}
		_, err = s.o.Admission.Settle(ctx, tx, ses.Host)
		return err
	})
	return token, err
}

// AwaitsLockTicket refuses a ticket for orders that UseLockTicket would refuse as unknown.
func AwaitsLockTicket(ctx context.Context, r store.Reader, token string) error {
	_, err := lockTickets().Get(ctx, r, hashToken(token))
	if errors.Is(err, store.ErrNotFound) {
		return unknownLockTicket()
	}
	return err
}

func unknownLockTicket() *refusal.Error {
	return refusal.New(refusal.Refused, "ticket_unknown", "attest again to get a new one", "the ticket is unknown, expired or used")
}

// UseLockTicket uses up a ticket in tx and returns it. It is refused if the host was assigned again, if its window closed,
// and while it is held.
func UseLockTicket(ctx context.Context, tx *store.Tx, token string, now time.Time) (*LockTicket, error) {
	unknown := unknownLockTicket()
	t, err := lockTickets().Get(ctx, tx, hashToken(token))
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	lockTickets().Delete(tx, hashToken(token))
	rec, err := store.Optional(hostrecord.Records().Get(ctx, tx, t.Value.Host))
	if err != nil {
		return nil, err
	}
	if !now.Before(t.Value.Expires) || rec.Epoch != t.Value.Epoch || rec.WindowClosed(now) != "" || len(rec.Conflicts) > 0 {
		return nil, unknown
	}
	host, err := inventory.Hosts().Get(ctx, tx, t.Value.Host)
	if err != nil {
		return nil, err
	}
	return &LockTicket{Host: &host.Value, Adapters: t.Value.Adapters}, nil
}
