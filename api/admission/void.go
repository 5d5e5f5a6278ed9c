package admission

import (
	"context"
	"errors"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/hostrecord"
	"portcullis/api/store"
)

// voidEvidence makes a host attest again, and brings its phase up to date.
func (s *Service) voidEvidence(ctx context.Context, tx *store.Tx, id string) error {
	rec, err := hostrecord.Records().Get(ctx, tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	rec.Value.Certificate = nil
	if err := attestation.DropEvidence(ctx, tx, s.now(), id, &rec.Value); err != nil {
		return err
	}
	if err := hostrecord.Records().Put(tx, id, rec.Value); err != nil {
		return err
	}
	_, _, err = s.settle(ctx, tx, id)
	return err
}

// forget voids all that a host showed with another TPM: its evidence, its sessions, its
// seal, its tickets and its token. Its window closes.
func (s *Service) forget(ctx context.Context, tx *store.Tx, id string) error {
	rec, err := hostrecord.Records().Get(ctx, tx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	r := rec.Value
	r.DropToken(tx)
	r.Unseal(tx)
	if err := attestation.DropEvidence(ctx, tx, s.now(), id, &r); err != nil {
		return err
	}
	r.Window = time.Time{}
	r.Epoch++ // of which sessions, seals and tickets are
	attestation.MeasuredBoots().Delete(tx, id)
	if err := hostrecord.Records().Put(tx, id, r); err != nil {
		return err
	}
	_, _, err = s.settle(ctx, tx, id)
	return err
}

// forInventory is what inventory asks of admission.
type forInventory struct{ s *Service }

// Void implements register.Admission.
func (a forInventory) Void(ctx context.Context, tx *store.Tx, host string) error {
	return a.s.voidEvidence(ctx, tx, host)
}

// Forget implements register.Admission.
func (a forInventory) Forget(ctx context.Context, tx *store.Tx, host string) error {
	return a.s.forget(ctx, tx, host)
}

// Settle implements register.Admission.
func (a forInventory) Settle(ctx context.Context, tx *store.Tx, host string) error {
	_, _, err := a.s.settle(ctx, tx, host)
	return err
}
