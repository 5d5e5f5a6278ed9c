package proving

import (
	"context"

	"portcullis/api/isolation"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullisd/placekeys"
)

// CatchUp reads what was touched since the newest reading, once.
func (k *Keeper) CatchUp(ctx context.Context) error { return k.catchUp(ctx) }

// FollowRecords follows what is written to the store until ctx ends, as a Keeper does.
func (p *Prover) FollowRecords(ctx context.Context) { p.written.Run(ctx) }

// ProveEverything reads all records, and proves what was read last as a whole, as if nothing was known: what it takes besides reading the fabric.
func (p *Prover) ProveEverything(ctx context.Context) error {
	d, err := p.intent(ctx)
	if err != nil {
		return err
	}
	r := p.newest(p.Pace.Membership)
	whole, err := isolation.Prove(d.intent, r.found, r.when)
	if err != nil {
		return err
	}
	whole.Report(v1.IsolationQuery{})
	whole.Drift()
	whole.Ports()
	whole.Outsiders()
	return nil
}

// Current returns what is declared now, as it is known.
func (p *Prover) Current(ctx context.Context) (*isolation.Intent, error) {
	d, err := p.current(ctx)
	return d.intent, err
}

// Declaring are the collections that an Intent is made of.
var Declaring = declaring

// HasKeys reports whether keys that were opened before serve for what is declared now.
func (p *Prover) HasKeys(ctx context.Context) (bool, error) {
	d, err := p.current(ctx)
	return d.keys != nil, err
}

// OpenKeys has keys serve for what is declared now.
func (p *Prover) OpenKeys(ctx context.Context) error {
	d, err := p.current(ctx)
	p.opened(&d, &placekeys.Book{})
	return err
}
