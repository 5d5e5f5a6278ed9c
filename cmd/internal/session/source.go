package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"portcullis/cmd/internal/signin"
	"portcullis/fabricsm/ib"
)

const (
	// aheadOf is how long before the end of a token it is renewed, for one that lives long.
	aheadOf = time.Minute

	// goodWithin is how long a request whose token is still good waits for another one, and goodPause is the time between two attempts.
	goodWithin = 5 * time.Second
	goodPause  = 10 * time.Second

	// grace is how long a renewal may go on after its command was interrupted: the provider may have replaced the refresh token already.
	grace = 3 * time.Second
)

// Ended is the error of a session that can't be renewed.
type Ended struct {
	Place Place
	Why   string
}

// Error implements error.
func (e *Ended) Error() string { return fmt.Sprintf("the session of %s has ended: %s", e.Place, e.Why) }

// Source returns the token of a session, and renews it when it is near its end. It is safe for concurrent use.
type Source struct {
	place   Place
	service string // the one that gets the token
	ask     func(context.Context, *Session) (*signin.Tokens, error)
	now     func() time.Time
	write   func(*Session) error // shows before a renewal that what it returns can be kept

	mu      sync.Mutex
	current *Session  // nil: it was signed out
	later   time.Time // no attempt before, as long as the token is good
}

// Open returns the source of the session at a place, nil where there is none. Service is the one that the tokens are sent to: a session
// for another one is refused.
func Open(place Place, service string) (*Source, error) {
	x, err := place.Read()
	if x == nil || err != nil {
		return nil, err
	}
	if x.Service != service {
		return nil, &Ended{place, "it is for " + x.Service + ", and not for " + service}
	}
	return &Source{place: place, service: service, ask: renewed, now: time.Now, write: place.write, current: x}, nil
}

// Session returns the session as it is now, nil after it was signed out.
func (s *Source) Session() *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// renewed asks the provider of a session for new tokens.
func renewed(ctx context.Context, s *Session) (*signin.Tokens, error) {
	p, err := signin.Discover(ctx, s.Settings)
	if err != nil {
		return nil, err
	}
	return p.Renew(ctx, &s.Tokens)
}

// Token returns the token for the next request. An *Ended says that the person has to sign in again.
func (s *Source) Token(ctx context.Context) (ib.SecretText, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.near(s.current) {
		return s.current.Tokens.Bearer, nil
	}
	within := ctx
	if s.good() {
		if s.now().Before(s.later) {
			return s.current.Tokens.Bearer, nil
		}
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, goodWithin)
		defer cancel()
	}
	if err := s.renew(within); err != nil {
		if !s.good() {
			return ib.SecretText{}, err
		}
		s.later = s.now().Add(goodPause)
	}
	return s.current.Tokens.Bearer, nil // renewed, or good for a moment still
}

// good reports whether there is a token, and its end has not come.
func (s *Source) good() bool { return s.current != nil && s.now().Before(s.current.Tokens.Expires) }

// outlast returns a context that ends grace after ctx.
func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })
	return out, func() { stop(); cancel() }
}

// near reports whether a session is to be renewed; one that is not there is.
func (s *Source) near(x *Session) bool {
	if x == nil {
		return true
	}
	ahead := aheadOf
	if !x.Tokens.Begins.IsZero() {
		ahead = min(ahead, x.Tokens.Expires.Sub(x.Tokens.Begins)/5)
	}
	return !s.now().Add(ahead).Before(x.Tokens.Expires)
}

// renew takes what another process has renewed, or renews. A session that the provider ended keeps its token, and loses the
// refresh token, which is of no more use.
func (s *Source) renew(ctx context.Context) error {
	return s.place.Change(ctx, func(was *Session) (*Session, error) {
		s.current = was
		switch {
		case was == nil:
			return nil, &Ended{s.place, "it was signed out"}
		case was.Service != s.service:
			s.current = nil
			return was, &Ended{s.place, "it is for " + was.Service + " now"}
		case !s.near(was):
			return was, nil
		case was.Tokens.Refresh.IsZero():
			return was, &Ended{s.place, "its token ended at " + was.Tokens.Expires.UTC().Format(time.RFC3339) + ", and can't be renewed"}
		}
		// A provider that rotates refresh tokens takes the earlier one for stolen when it comes again. So it is used where the next one can be
		// kept, and its answer is awaited.
		if err := ctx.Err(); err != nil {
			return was, err
		}
		if err := s.write(was); err != nil {
			return was, err
		}
		next := *was
		asking, cancel := outlast(ctx)
		defer cancel()
		tokens, err := s.ask(asking, was)
		if e, ok := errors.AsType[*signin.Error](err); ok && e.Over {
			next.Tokens.Refresh = ib.SecretText{}
			s.current = &next
			return &next, &Ended{s.place, e.Detail}
		}
		if err != nil {
			return was, fmt.Errorf("session of %s: %w", s.place, err)
		}
		next.Tokens = *tokens
		s.current = &next
		return &next, nil
	})
}
