// Package anchor keeps heads of the audit log outside of the store, and notices by them that the state was rolled back.
//
// Who puts an older copy of the state in place of a newer one has an audit log that is whole in itself. So each instance
// of the service notes the log's head in a file, a system log or at a web server (Sink) a bounded time after it moved,
// and once more when it stops. When it starts, and before it notes another head, it holds the log against what can be
// read there. A log that ends before an anchor, or has another entry in its place, is of a state that was rolled back:
// that is an event, and the state is in review (package review) until an operator ends that. The log then goes on as
// another branch, and the log is not compared with anchors of earlier branches any more.
//
// Each instance does so by itself, also where several share a store: no lease is needed for what only reads, no leader
// is missing while one is elected, and a machine's own file has what that machine saw. They are heads of one log.
//
// What a sink says grants nothing and takes nothing: a forged anchor can only have the state reviewed. Anchors are
// therefore believed without a look at signatures, which are for readers elsewhere.
package anchor

import (
	"context"

	"portcullis/api/audit/chain"
)

// Sink is a place outside of the store that takes anchors.
type Sink interface {
	// Kind is file, syslog or webhook.
	Kind() string
	// Name names it in metrics and messages. It holds no secret.
	Name() string
	// Write returns nil once the sink has the anchor. It is called by one goroutine at a time.
	Write(ctx context.Context, a *chain.Anchor) error
}

// Reader is a Sink that returns anchors which it took.
type Reader interface {
	Sink
	// Read returns those that it has, by Seq. With an error the list is what could be read.
	Read(ctx context.Context) ([]chain.Anchor, error)
}
