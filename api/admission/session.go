package admission

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"time"

	"portcullis/api/inventory"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// Reasons for refused evidence that are admission's own, beside those of
// package attest.
const (
	ReasonUnknownHost attest.Reason = "host-unknown" // not in inventory
	ReasonWindow      attest.Reason = "window"       // no open provisioning window
	ReasonLimited     attest.Reason = "rate"         // too many attempts
	ReasonChanged     attest.Reason = "changed"      // assignment or inventory changed during the session
)

var sessionID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// OpenSession starts an attestation of the host named in req: its EK must be
// the one inventory pins and its provisioning window open. source is the
// network address the request came from. A host has one open session; a new
// one replaces it. The session is single use and lives as long as the policy
// says.
//
// Too many attempts are an *Error of kind Limited. Every other refusal is an
// *attest.Refusal, so that a stranger cannot tell an unknown host from one
// whose window is closed.
func (s *Service) OpenSession(ctx context.Context, req *attest.SessionRequest, source string) (*attest.Session, error) {
	now := s.now()
	if req == nil {
		return nil, &attest.Refusal{Code: attest.ReasonRequest, Detail: "no request"}
	}
	if !s.sources.allow(source, now) {
		return nil, tooMany("address " + clip(source))
	}
	// Before looking the host up, so that limits do not tell which hosts exist.
	if inventory.ValidHostID(req.Host) && !s.hosts.allow(req.Host, now) {
		return nil, tooMany("host " + req.Host)
	}
	f, err := s.gather(ctx, s.o.Store, req.Host)
	if IsKind(err, NotFound) {
		s.o.Log.Info("attestation refused", "code", ReasonUnknownHost, "host", clip(req.Host), "source", source)
		return nil, &attest.Refusal{Code: ReasonUnknownHost, Detail: fmt.Sprintf("no host %q in inventory", clip(req.Host))}
	}
	if err != nil {
		return nil, explain(err)
	}
	if why := windowClosed(f); why != "" {
		return nil, s.deny(ctx, f.host.ID, source, &attest.Refusal{Code: ReasonWindow, Detail: why})
	}
	challenge, session, err := attest.Begin(s.o.Rand, now, req, expected(&f.host), s.o.Policy)
	var no *attest.Refusal
	if errors.As(err, &no) {
		return nil, s.deny(ctx, f.host.ID, source, no)
	}
	if err != nil {
		return nil, &Error{Code: "internal", Status: Internal, Detail: err.Error(), Err: err}
	}
	if err := s.keepSession(ctx, f, challenge, source); err != nil {
		return nil, err
	}
	return session, nil
}

func tooMany(who string) *Error {
	return refusal(Limited, v1.CodeRateLimited, "wait a minute and try again", "too many attestation attempts from %s", who)
}

// windowClosed says why the host may not attest now, "" if it may.
func windowClosed(f *facts) string {
	switch {
	case f.rec.Cluster == "":
		return "the host is not assigned to a cluster: assign it to open a provisioning window"
	case f.rec.Admitted:
		return "the host was admitted, which closed its provisioning window: release it and assign it again"
	case !f.now.Before(f.rec.Window):
		return fmt.Sprintf("the provisioning window closed at %s: assign the host again to open one", f.rec.Window.Format(time.RFC3339))
	default:
		return ""
	}
}

// keepSession stores the challenge in the place of an older one.
func (s *Service) keepSession(ctx context.Context, f *facts, ch *attest.Challenge, source string) error {
	// The lease only cleans up; expiry is judged by the clock.
	lease, err := s.o.Store.NewLease(ctx, ch.Expires.Sub(f.now)+time.Minute)
	if err != nil {
		return explain(err)
	}
	id := f.host.ID
	return s.update(ctx, func(tx *store.Tx) error {
		rec, err := optional(Records().Get(ctx, tx, id))
		if err != nil {
			return err
		}
		if rec.Epoch != f.rec.Epoch || rec.Cluster != f.rec.Cluster {
			return &attest.Refusal{Code: ReasonChanged, Detail: "the host's assignment changed meanwhile"}
		}
		if err := dropSession(ctx, tx, id); err != nil {
			return err
		}
		return errors.Join(
			sessions().PutLeased(tx, ch.ID, sessionRecord{Challenge: ch, Host: id, Epoch: rec.Epoch, Source: source}, lease),
			openSessions().PutLeased(tx, id, sessionRef{Session: ch.ID}, lease),
		)
	})
}

// dropSession ends the host's open session, if any.
func dropSession(ctx context.Context, tx *store.Tx, host string) error {
	ref, err := openSessions().Get(ctx, tx, host)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err == nil {
		openSessions().Delete(tx, host)
		sessions().Delete(tx, ref.Value.Session)
	}
	return err
}

// SubmitEvidence judges the evidence for a session, which it consumes first,
// whatever comes of it. channel is the TLS exporter value of the connection.
// Accepted evidence is recorded together with the grants it leads to, and
// earns the host a token to read its own status with. Evidence that is not
// accepted is an *attest.Refusal; its reason is recorded in the host's status
// and in the audit log.
func (s *Service) SubmitEvidence(ctx context.Context, session string, channel []byte, ev *attest.Evidence) (*v1.AttestResult, error) {
	ses, err := s.consume(ctx, session)
	if err != nil {
		return nil, err
	}
	host, err := s.inventoryHost(ctx, s.o.Store, ses.Host)
	if err != nil {
		return nil, explain(err)
	}
	verdict := attest.Verify(s.now(), ses.Challenge, channel, ev, expected(&host), s.o.Policy)
	if !verdict.OK {
		return nil, s.deny(ctx, ses.Host, ses.Source, &attest.Refusal{Code: verdict.Code, Detail: verdict.Detail})
	}
	result, err := s.accept(ctx, ses, &host, verdict)
	var no *attest.Refusal
	if errors.As(err, &no) {
		return nil, s.deny(ctx, ses.Host, ses.Source, no)
	}
	return result, err
}

// consume deletes the session and gives it. An unknown, expired or used one is
// refused.
func (s *Service) consume(ctx context.Context, id string) (sessionRecord, error) {
	unknown := &attest.Refusal{Code: attest.ReasonSession, Detail: "session is unknown, expired or used"}
	if !sessionID.MatchString(id) {
		return sessionRecord{}, unknown
	}
	var ses sessionRecord
	err := s.update(ctx, func(tx *store.Tx) error {
		rec, err := sessions().Get(ctx, tx, id)
		if errors.Is(err, store.ErrNotFound) {
			return unknown
		}
		if err != nil {
			return err
		}
		ses = rec.Value
		sessions().Delete(tx, id)
		openSessions().Delete(tx, ses.Host)
		return nil
	})
	return ses, err
}

// accept records the verdict, if nothing it rests on changed since.
func (s *Service) accept(ctx context.Context, ses sessionRecord, judged *inventory.Host, v attest.Verdict) (*v1.AttestResult, error) {
	token, err := s.newToken()
	if err != nil {
		return nil, err
	}
	var d decision
	err = s.update(ctx, func(tx *store.Tx) error {
		f, err := s.gather(ctx, tx, ses.Host)
		if err != nil {
			return err
		}
		if _, identity := judged.Diff(&f.host); identity || f.rec.Epoch != ses.Epoch {
			return &attest.Refusal{Code: ReasonChanged, Detail: "inventory or assignment of the host changed during the session"}
		}
		if why := windowClosed(f); why != "" {
			return &attest.Refusal{Code: ReasonWindow, Detail: why}
		}
		if f.rec.Token != "" {
			tokens().Delete(tx, f.rec.Token)
		}
		f.rec.Token = hashToken(token)
		f.rec.Evidence = &Evidence{Time: f.now, Session: ses.Challenge.ID}
		if err := errors.Join(
			Records().Put(tx, ses.Host, f.rec),
			Verdicts().Put(tx, ses.Host, v),
			tokens().Put(tx, f.rec.Token, tokenRef{Host: ses.Host}),
			s.log(ctx, tx, acceptedChange(ses, v)),
		); err != nil {
			return err
		}
		_, d, err = s.settle(ctx, tx, ses.Host)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &v1.AttestResult{Host: ses.Host, Phase: d.phase, StatusToken: token}, nil
}

func acceptedChange(ses sessionRecord, v attest.Verdict) change {
	return change{
		actor: "agent:" + ses.Host, action: "evidence.accept", object: "host/" + ses.Host, code: "ok", after: v,
		detail: fmt.Sprintf("session %s from %s; EK %s, AK %s, boot %d/%d, PCRs %s, statement %s, policy %s",
			v.Facts.Session, ses.Source, v.Facts.EKDigest, v.Facts.AKName, v.Facts.Boot.Reset, v.Facts.Boot.Restart,
			v.Facts.PCRDigest, v.Facts.StatementDigest, v.Facts.PolicyVersion),
	}
}

// deny records why evidence of a known host was refused, and gives the
// refusal. That it cannot be recorded does not make the answer a different
// one.
func (s *Service) deny(ctx context.Context, host, source string, no *attest.Refusal) error {
	err := s.update(ctx, func(tx *store.Tx) error {
		rec, err := optional(Records().Get(ctx, tx, host))
		if err != nil {
			return err
		}
		rec.Denial = &v1.Denial{Time: s.now(), Code: string(no.Code), Detail: no.Detail}
		return errors.Join(
			Records().Put(tx, host, rec),
			s.log(ctx, tx, change{
				actor: "agent:" + host, action: "evidence.refuse", object: "host/" + host,
				code: string(no.Code), detail: fmt.Sprintf("%s (from %s)", no.Detail, source),
			}),
		)
	})
	if err != nil {
		s.o.Log.Error("refused evidence could not be recorded", "host", host, "code", no.Code, "err", err)
	}
	return no
}

// HostStatusByToken gives the host whose latest accepted evidence earned the
// token.
func (s *Service) HostStatusByToken(ctx context.Context, token string) (*v1.Host, error) {
	unknown := refusal(Refused, "token_unknown", "attest again to get a new one", "status token is not known, or was replaced by a newer one")
	ref, err := tokens().Get(ctx, s.o.Store, hashToken(token))
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknown
	}
	if err != nil {
		return nil, explain(err)
	}
	return s.Host(ctx, ref.Value.Host)
}

const tokenSize = 32 // bytes of randomness

func (s *Service) newToken() (string, error) {
	b := make([]byte, tokenSize)
	if _, err := io.ReadFull(s.o.Rand, b); err != nil {
		return "", &Error{Code: "internal", Status: Internal, Detail: "no randomness for a status token", Err: err}
	}
	return base64.RawURLEncoding.EncodeToString(b), nil
}

func hashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// expected gives what inventory says about the host in attestation's terms.
func expected(h *inventory.Host) attest.Expected {
	e := attest.Expected{Host: h.ID, EKDigest: h.EK}
	for _, a := range h.HCAs {
		hca := attest.ExpectedHCA{NodeGUID: a.NodeGUID, SystemImageGUID: a.SystemImageGUID}
		for _, p := range a.Ports {
			hca.Ports = append(hca.Ports, attest.ExpectedPort{Num: p.Num, GUID: p.GUID})
		}
		e.HCAs = append(e.HCAs, hca)
	}
	return e
}
