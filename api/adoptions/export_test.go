package adoptions

import (
	"context"
	"strings"

	"portcullis/api/store"
)

// Wakes looks at all memberships, and returns whether Run looks again after a change of a key.
func (s *Service) Wakes(ctx context.Context) (func(key string) bool, error) {
	l, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	return func(key string) bool {
		return strings.HasPrefix(key, l.watched()) && l.matters(store.Change{Key: key})
	}, nil
}
