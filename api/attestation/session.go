package attestation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"portcullis/api/attestation/session"
	"portcullis/api/audit"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/limit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/api/tracecontext"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// Reasons for refused evidence that are admission's own, beside those of
// package attest.
const (
	ReasonUnknownHost attest.Reason = "host-unknown"  // not in inventory
	ReasonWindow      attest.Reason = "window"        // no open provisioning window
	ReasonChanged     attest.Reason = "changed"       // assignment or inventory changed during the session
	ReasonConflict    attest.Reason = "guid-conflict" // a GUID of the evidence is another host's
)

// OpenSession starts an attestation of the host named in req: its EK must be the one inventory pins and its provisioning
// window open. source is the network address the request came from. Nothing of the session is kept: its id holds it,
// sealed. It is single use and lives as long as the policy says.
//
// Too many attempts are a *refusal.Error of kind Limited. Every other refusal is an *attest.Refusal, so that a stranger cannot
// distinguish an unknown host from one whose window is closed. The time it takes reveals nothing either, since the same is
// read, checked and written in both cases.
func (s *Service) OpenSession(ctx context.Context, req *attest.SessionRequest, source string) (*attest.Session, error) {
	now := s.now()
	if req == nil {
		return nil, &attest.Refusal{Code: attest.ReasonRequest, Detail: "no request"}
	}
	from := sourceOf(source)
	// Before the host is looked up, so that limits do not reveal which hosts exist.
	if err := s.limitAttempts(req.Host, from, now); err != nil {
		return nil, err
	}
	c, err := s.candidate(ctx, req.Host)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	denied, err := s.deniedEK(ctx, req)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	challenge, opened, err := attest.Begin(s.o.Rand, now, req, expected(&c.host), s.o.Policy)
	var no *attest.Refusal
	if err != nil && !errors.As(err, &no) {
		return nil, &refusal.Error{Code: "internal", Status: refusal.Internal, Detail: err.Error(), Err: err}
	}
	d := denial{host: c.host.ID, epoch: c.rec.Epoch, source: source, proven: hostrecord.ProvenEK, stranger: c.stranger}
	if denied != nil && (no == nil || no.Code == attest.ReasonEKPin) {
		no = denied // says more
	}
	if no != nil {
		d.proven, d.attempt = hostrecord.ProvenNothing, no.Code
	}
	if no = cmp.Or(c.closed(now), no); no != nil {
		return nil, s.deny(ctx, d, no)
	}
	opened.ID, err = s.sessions.Seal(ctx, &session.Session{
		Challenge: challenge, Host: c.host.ID, Epoch: c.rec.Epoch, Row: c.row, Source: source, Locks: req.Locks,
	})
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// deniedEK refuses an EK that was replaced; nil: it was not. It reads the same of all.
func (s *Service) deniedEK(ctx context.Context, req *attest.SessionRequest) (*attest.Refusal, error) {
	ek := cmp.Or(s.o.Policy.ClaimedEK(&req.EK), inventory.NoEK)
	was, err := inventory.DeniedEKs().Get(ctx, s.o.Store, ek)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &attest.Refusal{
		Code:   attest.ReasonEKRevoked,
		Detail: fmt.Sprintf("EK %s is on the deny list: it was that of host %s, and was replaced (%s)", ek, was.Value.Host, was.Value.Ticket),
	}, nil
}

// candidate is the host a session is asked for.
type candidate struct {
	host     inventory.Host
	row      int64 // revision of inventory's record
	rec      hostrecord.Record
	stranger bool // not in inventory: host is a decoy with an EK that no TPM has
}

func (s *Service) candidate(ctx context.Context, id string) (candidate, error) {
	host, row, err := inventory.Find(ctx, s.o.Store, id)
	c := candidate{host: host, row: row, stranger: refusal.IsKind(err, refusal.NotFound)}
	if c.stranger {
		c.host = inventory.Host{ID: id, EK: inventory.NoEK, HCAs: []inventory.HCA{{NodeGUID: 1, Ports: []inventory.Port{{Num: 1, GUID: 2}}}}}
	} else if err != nil {
		return c, err
	}
	c.rec, err = store.Optional(hostrecord.Records().Get(ctx, s.o.Store, id))
	return c, err
}

// closed refuses a host that may not attest now, whatever it shows.
func (c *candidate) closed(now time.Time) *attest.Refusal {
	if c.stranger {
		return unknownHost(c.host.ID)
	}
	if why := c.rec.WindowClosed(now); why != "" {
		return &attest.Refusal{Code: ReasonWindow, Detail: why}
	}
	return nil
}

func unknownHost(id string) *attest.Refusal {
	return &attest.Refusal{Code: ReasonUnknownHost, Detail: fmt.Sprintf("no host %q in inventory", refusal.Clip(id))}
}

func tooMany(who string) *refusal.Error {
	return refusal.New(refusal.Limited, v1.CodeRateLimited, "wait a minute and try again", "too many attestation attempts from %s", who)
}

// attempt is the key that limits sessions: a sender that names a host uses up only its own share.
type attempt struct {
	host   string
	source netip.Addr
}

func (s *Service) limitAttempts(host string, from netip.Addr, now time.Time) error {
	switch {
	case !s.sources.Allow(from, now):
		return tooMany("address " + from.String())
	case !inventory.ValidHostID(host):
		return unknownHost(host)
	case !s.attempts.Allow(attempt{host, from}, now):
		return tooMany("host " + host)
	default:
		return nil
	}
}

func sourceOf(host string) netip.Addr {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return limit.Source(a)
}

// SubmitEvidence judges the evidence for a session. The session is used up once
// the proof in the evidence shows that the host's TPM opened its credential,
// whatever comes of the rest. channel is the TLS exporter value of the connection.
// Accepted evidence is recorded together with the grants it leads to, and
// earns the host a token to read its own status with. Evidence that lacks nothing
// but locked adapters earns a ticket for orders to lock them. Evidence that is not
// accepted is an *attest.Refusal; its reason is recorded in the host's status
// and in the audit log.
func (s *Service) SubmitEvidence(ctx context.Context, id string, channel []byte, ev *attest.Evidence) (*v1.AttestResult, error) {
	received := s.now()
	ses, err := s.sessions.Open(ctx, id)
	if err != nil {
		return nil, err
	}
	host, err := s.stillAsked(ctx, &ses)
	if err != nil {
		return nil, err
	}
	exp, err := s.expect(ctx, s.o.Store, &host)
	if err != nil {
		return nil, refusal.Explain(err)
	}
	verdict, course := s.verify(ses, channel, ev, exp)
	d := denial{host: ses.Host, epoch: ses.Epoch, source: ses.Source, proven: hostrecord.ProvenEK, attempt: verdict.Code}
	if verdict.Facts.AKName != "" { // set once the TPM has opened the credential
		d.proven, d.adapters = hostrecord.ProvenTPM, aboutAdapters(&verdict)
		if !s.hosts.Allow(ses.Host, s.now()) {
			return nil, tooMany("host " + ses.Host)
		}
		if err := s.sessions.Consume(ctx, &ses); err != nil {
			return nil, err
		}
	}
	s.lookAtLocks(ctx, &verdict)
	if ticket, err := s.lockFirst(ctx, ses, &verdict, channel, ev, exp); err != nil || ticket != "" {
		return &v1.AttestResult{Host: ses.Host, Phase: v1.PhaseAwaiting, LockTicket: ticket, DrawChallenges: ticket != "" && s.o.Locks.Draws()}, err
	}
	if !verdict.OK {
		s.keepRefusedBoot(ctx, &host, &verdict)
		no := &attest.Refusal{Code: verdict.Code, Detail: verdict.Detail}
		if no.Code == attest.ReasonGUIDMismatch {
			no = s.dispute(ctx, &ses, &host, &verdict, no)
		}
		return nil, s.deny(ctx, d, no)
	}
	sc, seal, err := attest.BeginSeal(s.o.Rand, s.now(), ses.Challenge, &verdict.Facts, s.o.Policy)
	if err != nil {
		return nil, &refusal.Error{Code: "internal", Status: refusal.Internal, Detail: err.Error(), Err: err}
	}
	course.Received, course.Host = received, tracecontext.Of(ctx)
	result, err := s.accept(ctx, ses, &host, verdict, sc, course)
	if err == nil {
		s.accepted.Add(1)
		result.Seal, result.Result = s.offering(seal), s.resultForHost(ctx, ses.Host)
	}
	var no *attest.Refusal
	if errors.As(err, &no) {
		return nil, s.deny(ctx, d, no)
	}
	return result, err
}

// AwaitsEvidence refuses a session that is unknown, expired or used, as SubmitEvidence
// would: it takes no evidence to find that out.
func (s *Service) AwaitsEvidence(ctx context.Context, id string) error {
	ses, err := s.sessions.Open(ctx, id)
	if err == nil && !s.tries.Allow(ses.Number(), s.now()) {
		return session.Unknown()
	}
	return err
}

// stillAsked returns the host of a session. A session whose host was assigned, released or changed in inventory since
// is refused.
func (s *Service) stillAsked(ctx context.Context, ses *session.Session) (inventory.Host, error) {
	host, row, err := inventory.Find(ctx, s.o.Store, ses.Host)
	if refusal.IsKind(err, refusal.NotFound) || err == nil && row != ses.Row {
		return inventory.Host{}, session.Unknown()
	}
	if err != nil {
		return inventory.Host{}, refusal.Explain(err)
	}
	rec, err := store.Optional(hostrecord.Records().Get(ctx, s.o.Store, ses.Host))
	if err != nil {
		return inventory.Host{}, refusal.Explain(err)
	}
	if rec.Epoch != ses.Epoch || rec.Cluster == "" {
		return inventory.Host{}, session.Unknown()
	}
	return host, nil
}

// accept records the verdict, if nothing it rests on changed since, and what is
// left to be shown before the host counts as handed over.
func (s *Service) accept(ctx context.Context, ses session.Session, judged *inventory.Host, v attest.Verdict, sc *attest.SealChallenge, course hostrecord.Course) (*v1.AttestResult, error) {
	token, err := s.newToken()
	if err != nil {
		return nil, err
	}
	lease, err := s.o.Store.NewLease(ctx, sc.Expires.Sub(s.now())+time.Minute) // only cleans up
	if err != nil {
		return nil, refusal.Explain(err)
	}
	longer, err := s.o.Store.NewLease(ctx, s.o.EvidenceAge+time.Minute) // the same
	if err != nil {
		return nil, refusal.Explain(err)
	}
	awaited := hostrecord.SealRecord{Challenge: sc, Host: ses.Host, Epoch: ses.Epoch, Source: ses.Source}
	var phase v1.Phase
	err = s.update(ctx, func(tx *store.Tx) error {
		f, err := s.read(ctx, tx, ses.Host)
		if err != nil {
			return err
		}
		if _, identity := judged.Diff(&f.host); identity || f.rec.Epoch != ses.Epoch {
			return &attest.Refusal{Code: ReasonChanged, Detail: "inventory or assignment of the host changed during the session"}
		}
		if why := f.rec.WindowClosed(f.now); why != "" {
			return &attest.Refusal{Code: ReasonWindow, Detail: why}
		}
		if err := s.acceptBoot(ctx, tx, judged, &f.host, &v); err != nil {
			return err
		}
		history, err := store.Optional(Boots().Get(ctx, tx, v.Facts.EKDigest))
		if err != nil {
			return err
		}
		if no := history.Check(v.Facts.Boot); no != nil {
			return no
		}
		f.rec.DropToken(tx)
		f.rec.Token = hashToken(token)
		f.rec.Unseal(tx)
		if err := DropEvidence(ctx, tx, f.now, ses.Host, &f.rec); err != nil {
			return err
		}
		f.rec.Evidence = &hostrecord.Evidence{
			Time: f.now, Session: ses.Number(), Reference: v.Facts.Reference, Waived: v.Facts.Waived, Nonce: ses.Challenge.Nonce,
			Judged: s.judging, Course: course,
		}
		if err := errors.Join(
			Boots().Put(tx, v.Facts.EKDigest, history.Accept(v.Facts.Boot)),
			hostrecord.Seals().PutLeased(tx, ses.Number(), awaited, lease),
			hostrecord.Unsealed().PutLeased(tx, ses.Number(), awaited, longer),
			hostrecord.Records().Put(tx, ses.Host, f.rec),
			hostrecord.Verdicts().Put(tx, ses.Host, v),
			s.proveLocks(ctx, tx, &v),
			hostrecord.Tokens().Put(tx, f.rec.Token, hostrecord.TokenRef{Host: ses.Host}),
			s.log(ctx, tx, acceptedChange(ses, v)),
		); err != nil {
			return err
		}
		phase, err = s.o.Admission.Settle(ctx, tx, ses.Host)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &v1.AttestResult{Host: ses.Host, Phase: phase, StatusToken: token}, nil
}

func acceptedChange(ses session.Session, v attest.Verdict) *audit.Change {
	return &audit.Change{
		Actor: "agent:" + ses.Host, Action: "evidence.accept", Object: "host/" + ses.Host, Code: "ok", After: v,
		Detail: fmt.Sprintf("session %s from %s; EK %s, AK %s, boot %d/%d, PCRs %s, reference %s, statement %s, policy %s",
			v.Facts.Session, ses.Source, v.Facts.EKDigest, v.Facts.AKName, v.Facts.Boot.Reset, v.Facts.Boot.Restart,
			v.Facts.PCRDigest, v.Facts.Reference, v.Facts.StatementDigest, v.Facts.PolicyVersion),
	}
}

// expected returns what inventory says about the host in attestation's terms.
func expected(h *inventory.Host) attest.Expected {
	e := attest.Expected{Host: h.ID, EKDigest: h.EK, Class: h.ReferenceClass()}
	for _, a := range h.HCAs {
		hca := attest.ExpectedHCA{NodeGUID: a.NodeGUID, SystemImageGUID: a.SystemImageGUID}
		for _, p := range a.Ports {
			hca.Ports = append(hca.Ports, attest.ExpectedPort{Num: p.Num, GUID: p.GUID})
		}
		e.HCAs = append(e.HCAs, hca)
	}
	return e
}
