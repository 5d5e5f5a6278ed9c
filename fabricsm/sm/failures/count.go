package failures

import "time"

// NearRetry is the first pause after a request that was not delivered: an answer that takes no time must not use up all tries
// at once.
const NearRetry = 5 * time.Millisecond

// Limits bound tries, and the pauses after them.
type Limits struct {
	Tries    int           // of a request
	Min, Max time.Duration // of a pause
}

// Longer returns the pause that follows one: twice as long.
func (l Limits) Longer(pause time.Duration) time.Duration { return min(max(2*pause, l.Min), l.Max) }

// round returns the pause after a number of others.
func (l Limits) round(rounds int) time.Duration { return min(l.Min<<min(rounds, 16), l.Max) }

// count is what went wrong with one piece of work since it last went well.
type count struct {
	tries   int    // without an answer
	rounds  int    // pauses made
	answers uint32 // the target had given when the first try failed
}

// near returns the pause before a request that was not delivered is sent again.
func (c count) near() time.Duration { return NearRetry << min(2*c.tries, 8) }

// Node is what is kept of a node. The zero value is that of one that has not answered.
type Node struct {
	answers uint32        // received from it
	pause   time.Duration // before it is asked again while silent
	back    time.Time     // when it last answered again
}

// steadyFor is how many times its last pause a node has to answer before the next silence counts as its first. Otherwise a
// node that answers now and then would be reported silent and back without end.
const steadyFor = 4

// fallSilent returns the pause before a node that fell silent is asked again.
func (n *Node) fallSilent(now time.Time, l Limits) time.Duration {
	if now.Sub(n.back) > steadyFor*n.pause {
		n.pause = 0
	}
	n.pause = l.Longer(n.pause)
	return n.pause
}
