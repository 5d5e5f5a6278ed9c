package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// Leadership says which of several instances manages the fabric. Errors are as those of
// Backend.
type Leadership interface {
	// Leadership returns how leadership stands.
	Leadership(ctx context.Context) (v1.Leadership, error)
	// StepDown has this instance, which leads, end its term, for another to lead.
	StepDown(ctx context.Context, actor, reason string) error
	// Leader returns where the API of the leader is reached, nil where this instance leads.
	Leader(ctx context.Context) (*Peer, error)
}

// Peer is the API of another instance.
type Peer struct {
	Name string
	URL  *url.URL // nil: it has none
	Pin  []byte   // SHA-256 of the public key of its certificate
}

// forwarded marks a request that another instance passed on, with the name of that one.
// Such a request is not passed on once more.
const forwarded = "Portcullis-Forwarded"

// forwardTimeout bounds how long the leader may take before it answers.
const forwardTimeout = 35 * time.Second

type stepDownInput struct{ Body v1.StepDown }

func (s *Server) leadershipRoutes(a huma.API) {
	register(s, a, operation{
		id: "step-down", method: http.MethodPost, path: "/v1/sm/step-down", tag: "fabric", leader: true, status: http.StatusNoContent,
		summary: "Have the leader end its term as Subnet Manager, for another instance to lead", access: accessOperate,
	}, func(ctx context.Context, in *stepDownInput) (*struct{}, error) {
		if s.leadership == nil {
			return nil, problem.New(http.StatusConflict, v1.CodeOnlyInstance, "this instance is the only one: none could lead in its place",
				"portcullisd cluster invite makes a second one")
		}
		return nil, s.leadership.StepDown(ctx, actor(ctx), in.Body.Reason)
	})
}

// leads passes requests of an operation that only the leader can answer on to it. The
// credential was checked before, and the leader checks it once more.
func (s *Server) leads(op operation) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		if s.leadership == nil || !op.leader {
			next(ctx)
			return
		}
		r, w := humachi.Unwrap(ctx)
		peer, err := s.leadership.Leader(r.Context())
		switch {
		case err != nil:
			p, fault := problem.Of(err)
			noteFault(r.Context(), fault)
			problem.Write(w, p)
		case peer == nil || peer.URL == nil:
			next(ctx)
		case r.Header.Get(forwarded) != "":
			problem.Write(w, problem.New(http.StatusServiceUnavailable, v1.CodeNoLeader,
				"leadership changes at this moment: the instance "+peer.Name+" leads now", "ask again"))
		case shownBy(s, r) != nil:
			problem.Write(w, problem.New(http.StatusMisdirectedRequest, v1.CodeNotLeader,
				"the instance "+peer.Name+" leads, and a request with a client certificate can't be passed on to it: only its owner can show it there",
				"send it to "+peer.URL.String()))
		default:
			r.Body = http.MaxBytesReader(w, r.Body, op.maxBody)
			s.forward(w, r, peer, &op)
		}
	}
}

// forward passes a request on.
func (s *Server) forward(w http.ResponseWriter, r *http.Request, peer *Peer, op *operation) {
	limit := forwardTimeout
	if op.long {
		limit = longTimeout
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	id := w.Header().Get("X-Request-Id")
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(peer.URL)
			p.Out.Host = peer.URL.Host
			p.Out.Header.Set(forwarded, peer.Name)
		},
		Transport: s.peers.To(peer.URL.Host, peer.Pin, forwardTimeout),
		ErrorLog:  slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ModifyResponse: func(resp *http.Response) error {
			for _, once := range []string{"X-Request-Id", "Cache-Control", "X-Content-Type-Options"} {
				resp.Header.Del(once) // this instance has set them
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
				problem.Write(w, problem.New(http.StatusRequestEntityTooLarge, v1.CodeTooLarge,
					fmt.Sprintf("the body has more than %d bytes", large.Limit), problem.HintOf(http.StatusRequestEntityTooLarge)))
				return
			}
			s.log.Warn("a request could not be passed on to the leader", "leader", peer.Name, "url", peer.URL.String(), "error", err, "request_id", id)
			problem.Write(w, problem.New(http.StatusServiceUnavailable, v1.CodeNoLeader,
				"the instance "+peer.Name+", which leads, was not reached at "+peer.URL.String(),
				"ask again; if this goes on, look at the log of this instance, and at the key advertise of that one"))
		},
	}
	proxy.ServeHTTP(w, r.WithContext(ctx))
}
