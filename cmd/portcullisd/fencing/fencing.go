// Package fencing takes hosts off the fabric because of drift, by the brake of admission and the orders that operators have, too.
package fencing

import (
	"context"

	"portcullis/api/admission"
	"portcullis/api/removals"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// actor is the name of the service in the audit log.
const actor = "service"

// Fencer implements remedy.Fencer.
type Fencer struct {
	Admission *admission.Service
	Removals  *removals.Remover
}

// MayFence implements remedy.Fencer.
func (f *Fencer) MayFence(ctx context.Context, tx *store.Tx, host, cause string, together []string) (bool, error) {
	return f.Admission.MayLose(ctx, tx, admission.Losing{Class: admission.BrakeDrift, Cause: cause, Host: host, Together: together})
}

// NotFenced implements remedy.Fencer.
func (f *Fencer) NotFenced(ctx context.Context, tx *store.Tx, host string) error {
	return f.Admission.LosesNothing(ctx, tx, admission.BrakeDrift, host)
}

// Fence implements remedy.Fencer.
func (f *Fencer) Fence(ctx context.Context, host, reason string) error {
	_, err := f.Removals.Fence(ctx, actor, host, v1.Fence{Reason: reason})
	return err
}
