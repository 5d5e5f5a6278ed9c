package api

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"portcullis/api/problem"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

type sessionInput struct{ Body attest.SessionRequest }

type sessionOutput struct{ Body *attest.Session }

type evidenceInput struct {
	ID   string `path:"id" maxLength:"8192" doc:"id of the session, as it was given"`
	Body attest.Evidence
}

type sealInput struct {
	ID   string `path:"id" maxLength:"8192" doc:"id of the session, as it was given"`
	Body attest.SealEvidence
}

type sealOutput struct{ Body *v1.SealResult }

type renewSealInput struct {
	ID            string `path:"id" maxLength:"8192" doc:"id of the session, as it was given"`
	Authorization string `header:"Authorization" doc:"Bearer and the status token"`
}

type renewSealOutput struct{ Body *attest.Seal }

type evidenceOutput struct{ Body *v1.AttestResult }

type statusInput struct {
	Authorization string `header:"Authorization" doc:"Bearer and the status token"`
}

type hostOutput struct{ Body *v1.Host }

func (s *Server) attestRoutes(a huma.API) {
	register(s, a, operation{
		id: "open-session", method: http.MethodPost, path: "/v1/attest/sessions", tag: "attestation",
		summary: "Open an attestation session and get its challenge",
		access:  accessHost, status: http.StatusCreated, maxBody: maxSession,
	}, func(ctx context.Context, in *sessionInput) (*sessionOutput, error) {
		session, err := s.backend.Attestation.OpenSession(ctx, &in.Body, noteOf(ctx).source)
		return &sessionOutput{session}, err
	})
	register(s, a, operation{
		id: "submit-evidence", method: http.MethodPut, path: "/v1/attest/sessions/{id}/evidence", tag: "attestation",
		summary: "Answer the challenge; the session is used up once the proof shows that the TPM opened the credential",
		access:  accessHost, maxBody: maxEvidence,
		expects: func(s *Server, r *http.Request) error {
			return s.backend.Attestation.AwaitsEvidence(r.Context(), chi.URLParam(r, "id"))
		},
	}, func(ctx context.Context, in *evidenceInput) (*evidenceOutput, error) {
		channel, err := s.binding(noteOf(ctx).tls)
		if err != nil {
			return nil, err
		}
		result, err := s.backend.Attestation.SubmitEvidence(ctx, in.ID, channel, &in.Body)
		return &evidenceOutput{result}, err
	})
	register(s, a, operation{
		id: "submit-seal", method: http.MethodPut, path: "/v1/attest/sessions/{id}/seal", tag: "attestation",
		summary: "Hand the host over: show that it can attest nothing more in this boot",
		access:  accessHost, maxBody: maxSeal,
		expects: func(s *Server, r *http.Request) error {
			return s.backend.Attestation.AwaitsSeal(r.Context(), chi.URLParam(r, "id"))
		},
	}, func(ctx context.Context, in *sealInput) (*sealOutput, error) {
		channel, err := s.binding(noteOf(ctx).tls)
		if err != nil {
			return nil, err
		}
		result, err := s.backend.Attestation.SubmitSeal(ctx, in.ID, channel, noteOf(ctx).source, &in.Body)
		return &sealOutput{result}, err
	})
	register(s, a, operation{
		id: "renew-seal", method: http.MethodPost, path: "/v1/attest/sessions/{id}/seal-nonce", tag: "attestation",
		summary: "Ask for the challenge of the seal again, when the last one is used up or too old",
		access:  accessHost,
	}, s.renewSeal)
	register(s, a, operation{
		id: "attest-status", method: http.MethodGet, path: "/v1/attest/status", tag: "attestation",
		summary: "Where the host that holds this status token, or has this certificate, stands",
		access:  accessStatus,
	}, s.attestStatus)
}

func noStatusToken() *problem.Problem {
	return problem.New(http.StatusUnauthorized, v1.CodeUnauthenticated, "no current status token or certificate was sent",
		"attest again; accepted evidence earns a token")
}

// byStatusToken answers a host that shows its status token with what f returns for it.
func byStatusToken[T any](ctx context.Context, authorization string, f func(ctx context.Context, token string) (T, error)) (out T, err error) {
	token := bearer(authorization)
	if token == "" {
		return out, noStatusToken()
	}
	out, err = f(ctx, token)
	if err == nil {
		return out, nil
	}
	return out, withoutCredential(ctx, err)
}

// withoutCredential returns the answer for a host whose token or certificate does not count.
func withoutCredential(ctx context.Context, err error) error {
	p, fault := problem.OfHost(err)
	if p.Code == v1.CodeEvidenceRefused {
		p = noStatusToken()
	}
	noteFault(ctx, fault)
	return p
}

// renewSeal answers a host whether its seal can still be had. The reason why it cannot is for operators.
func (s *Server) renewSeal(ctx context.Context, in *renewSealInput) (*renewSealOutput, error) {
	seal, err := byStatusToken(ctx, in.Authorization, func(ctx context.Context, token string) (*attest.Seal, error) {
		seal, err := s.backend.Attestation.RenewSeal(ctx, token, in.ID)
		if e, ok := errors.AsType[*refusal.Error](err); ok && e.Code == v1.CodeSealClosed {
			return nil, problem.New(http.StatusConflict, v1.CodeSealClosed, "this host's evidence can not be sealed any more",
				"reboot the host into its provisioning image and attest again")
		}
		return seal, err
	})
	return &renewSealOutput{seal}, err
}

// attestStatus answers a host about itself. It leaves out what only operators
// may know: why evidence was refused, by what it was accepted and no longer is, and
// which other hosts there are.
func (s *Server) attestStatus(ctx context.Context, in *statusInput) (*hostOutput, error) {
	var host *v1.Host
	var err error
	if who := peerOf(ctx); who.cert != nil {
		if host, err = s.backend.Attestation.HostStatusByCertificate(ctx, who.host, who.cert.Raw); err != nil {
			err = withoutCredential(ctx, err)
		}
	} else {
		host, err = byStatusToken(ctx, in.Authorization, s.backend.Attestation.HostStatusByToken)
	}
	if err != nil {
		return nil, err
	}
	told := *host
	st := &told.Status
	st.Guards = guardsForHost(&host.Status)
	st.LastDenial, st.Reference, st.Waived, st.Outdated, st.Conflicts = nil, "", nil, nil, nil
	return &hostOutput{&told}, nil
}

// guardsForHost returns the guards of a host without what they say of policy and of other hosts.
func guardsForHost(st *v1.HostStatus) []v1.Guard {
	out := slices.Clone(st.Guards)
	for i := range out {
		switch g := &out[i]; {
		case g.Met:
		case g.Name == v1.GuardAttested && len(st.Conflicts) > 0:
			g.Detail = "the host is held until an operator has looked"
		case g.Name == v1.GuardAttested && len(st.Outdated) > 0:
			g.Detail = "the accepted evidence does not count any more: reboot the host into its provisioning image and attest again, once an operator has it assigned"
		case g.Name == v1.GuardClock:
			g.Detail = "the service grants nothing at present"
		case g.Name == v1.GuardCapacity:
			g.Detail = "a port has no room for the partition, or is not free of an earlier one yet: operators see which"
		}
	}
	return out
}

// binding returns the TLS exporter value of a connection (RFC 9266), or nil when channel binding is off.
func (s *Server) binding(state *tls.ConnectionState) ([]byte, error) {
	if s.channel == ChannelOff {
		return nil, nil
	}
	refused := problem.New(http.StatusUpgradeRequired, v1.CodeChannelBinding,
		"evidence must come over a TLS 1.3 connection that ends at the service",
		"connect without a TLS proxy in between, or set channel_binding: off on the service")
	if state == nil || state.Version < tls.VersionTLS13 {
		return nil, refused
	}
	value, err := state.ExportKeyingMaterial(attest.ExporterLabel, nil, attest.ExporterSize)
	if err != nil {
		return nil, refused
	}
	return value, nil
}
