package work

// keep is how much memory, in entries, an empty list keeps.
const keep = 1024

// Again empties a list so that its memory is used again, unless it grew in one of
// the few moments at which everything changes.
func Again[T any](s []T) []T {
	if cap(s) > keep {
		return nil
	}
	return s[:0]
}
