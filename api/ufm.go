package api

import (
	"context"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"portcullis/api/credential"
	"portcullis/api/problem"
	"portcullis/api/reason"
	"portcullis/api/roles"
	"portcullis/api/tenancy"
	"portcullis/api/ufm"
)

// mountUFM serves the surface of UFM from the same services as the API, under the same credentials.
func mountUFM(s *Server, r chi.Router, settings ufm.Settings) {
	surface := ufm.New(ufm.Options{
		Settings: settings, Lifecycle: s.backend.Lifecycle, Tenancy: s.tenancy, Fabric: s.backend.State,
		Gate: gateUFM(s), Fault: noteFault, Version: s.version, Believes: s.believes,
		Charge: func(owner string, orders int) bool {
			now := time.Now()
			if !s.known.Has(owner, now) {
				return false
			}
			s.known.Spend(owner, now, orders)
			return true
		},
	})
	for _, prefix := range ufm.Prefixes {
		r.Mount(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), handlerTimeout)
			defer cancel()
			surface.ServeHTTP(w, r.WithContext(ctx))
		}))
	}
}

// gateUFM judges a request of that surface as authorize judges one of the API: what it shows is of the whole fabric,
// and what it changes is as assign-host, which the same roles may do as create and delete clusters.
func gateUFM(s *Server) ufm.Gate {
	return func(r *http.Request, a ufm.Access) (context.Context, string, *ufm.Denial) {
		needs, like := accessView, roles.UFM
		if a != ufm.Reads {
			needs, like = accessTenancy, "assign-host"
		}
		var who credential.Principal
		_, refused := s.admitPeer(r.Context(), needs)
		if refused == nil {
			if who, refused = s.authenticate(r, like, needs); refused != nil {
				s.noteEnded(r)
			}
		}
		ctx := r.Context()
		if refused == nil && a != ufm.Reads {
			ctx, refused = explained(s, r, a)
		}
		if refused != nil {
			return nil, "", &ufm.Denial{Status: refused.Status, Code: refused.Code, Detail: refused.Detail + "; " + refused.Hint}
		}
		noteActor(r.Context(), who.Name)
		return tenancy.Within(ctx, scopeOf(&who)), who.Name, nil
	}
}

// explained returns a context with the reason of a change by that surface. It demands one as for an operation of the API that does as
// much: a surface is no way around that.
func explained(s *Server, r *http.Request, a ufm.Access) (context.Context, *problem.Problem) {
	like := "assign-host"
	if a == ufm.TakesAway {
		like = "release-host"
	}
	text, refused := reasonOf(r)
	switch {
	case refused != nil:
		return nil, refused
	case text != "":
		return reason.With(r.Context(), text), nil
	case demandsReason(s, like):
		return nil, noReason()
	}
	return r.Context(), nil
}
