package store

import "context"

// growingKey marks the context of a change that removals must be able to do without.
type growingKey struct{}

// Growing returns a context for changes that add to what is kept: imports, assignments,
// evidence. A store that is short of room refuses them with ErrFull and takes others, so
// that removals are still recorded.
func Growing(ctx context.Context) context.Context {
	return context.WithValue(ctx, growingKey{}, true)
}

// IsGrowing reports whether ctx was made by Growing.
func IsGrowing(ctx context.Context) bool {
	on, _ := ctx.Value(growingKey{}).(bool)
	return on
}

// Roomy is a Backend that knows how much room it has.
type Roomy interface {
	// Room returns nil while everything is taken, and otherwise an error that is ErrFull or
	// ErrAway and says what is short and what to do.
	Room() error
}

// Room returns nil while the store takes changes that add to what is kept. Otherwise the
// error is ErrFull or ErrAway. A backend that is not Roomy always has room.
func (s *Store) Room() error {
	if r, ok := s.backend.(Roomy); ok {
		return r.Room()
	}
	return nil
}
