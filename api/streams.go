package api

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"time"

	"portcullis/api/credential"
)

// generation is a time during which the same credentials are taken. The zero value is the first one.
type generation struct {
	mu  sync.Mutex
	ctx context.Context // ends with the time
	end context.CancelFunc
}

// current returns a context that ends when the credentials are replaced.
func (g *generation) current() context.Context {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx == nil {
		g.ctx, g.end = context.WithCancel(context.Background())
	}
	return g.ctx
}

// renew notes that credentials were replaced.
func (g *generation) renew() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.end != nil {
		g.end()
	}
	g.ctx, g.end = nil, nil
}

type stillKey struct{}

// still follows the credential of a request.
type still struct {
	good    func() bool            // it has the owner, role and scope that it had
	current func() context.Context // ends when that is to be asked again
}

// stillGood returns what a stream asks when the credentials were replaced. A token of an identity provider is good until its end.
func stillGood(s *Server, r *http.Request, who *credential.Principal) *still {
	was, token, shown := *who, bearer(r.Header.Get("Authorization")), shownBy(s, r)
	return &still{current: s.credentials.current, good: func() bool {
		switch {
		case was.Machine:
			is, err := s.machines.Verify(shown, time.Now())
			return err == nil && reflect.DeepEqual(is, was)
		case was.Provider != "":
			return true
		default:
			is, ok := s.tokens.Load().Find(token, time.Now())
			return ok && reflect.DeepEqual(is, was)
		}
	}}
}

// whileGood returns a context that ends when the credential of the request does, for streams: at its end, or when it was taken back.
func whileGood(ctx context.Context) (context.Context, context.CancelFunc) {
	follows, _ := ctx.Value(stillKey{}).(*still)
	p, _ := ctx.Value(principalKey{}).(credential.Principal)
	var cancel context.CancelFunc
	if p.Expires.IsZero() {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithDeadline(ctx, p.Expires)
	}
	if follows != nil {
		follows.until(ctx, cancel)
	}
	return ctx, cancel
}

// until calls end once the credential is good no more, unless ctx ended before.
func (f *still) until(ctx context.Context, end func()) {
	stop := context.AfterFunc(f.current(), func() {
		if ctx.Err() == nil {
			f.until(ctx, end)
		}
	})
	context.AfterFunc(ctx, func() { stop() })
	if !f.good() { // after the registration, so that no change is missed
		end()
	}
}
