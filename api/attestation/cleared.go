package attestation

import (
	"context"
	"strings"

	"portcullis/api/audit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest"
)

// Boots holds what is known of the boots of each TPM, by the digest of its EK.
func Boots() store.Collection[attest.BootHistory] {
	return store.NewCollection[attest.BootHistory]("boots", 1)
}

// AcknowledgeClear says that an operator knows why the host's TPM was cleared:
// the next evidence may show lower counts of boots than the last.
func (s *Service) AcknowledgeClear(ctx context.Context, actor, host string, a v1.TPMCleared) (*v1.Host, error) {
	if strings.TrimSpace(a.Reason) == "" {
		return nil, refusal.New(refusal.Invalid, "reason_missing", "say why the TPM was cleared", "no reason given")
	}
	var out *v1.Host
	err := s.update(ctx, func(tx *store.Tx) error {
		f, err := s.o.Admission.Look(ctx, tx, host)
		if err != nil {
			return err
		}
		if err := f.Record.SameTenancy(ctx, host); err != nil {
			return err
		}
		if f.Host.EK == "" {
			return refusal.New(refusal.Conflict, "ek_missing", "import the host's EK", "inventory has no EK of host %s", host)
		}
		history, err := store.Optional(Boots().Get(ctx, tx, f.Host.EK))
		if err != nil {
			return err
		}
		if history.Seen == nil {
			return refusal.New(refusal.Conflict, "tpm_unknown", "", "no evidence of host %s was ever accepted: there is nothing to acknowledge", host)
		}
		was := history
		history.Cleared = true
		if err := Boots().Put(tx, f.Host.EK, history); err != nil {
			return err
		}
		out = f.Shown
		return s.log(ctx, tx, &audit.Change{
			Actor: actor, Action: "host.tpm-cleared", Object: "host/" + host, Before: was, After: history,
			Detail: "the TPM may count boots from the beginning: " + refusal.ClipTo(a.Reason, maxDetail),
		})
	})
	return out, s.o.Refusals.Note(ctx, audit.Change{Actor: actor, Action: "host.tpm-cleared", Object: "host/" + refusal.Clip(host)}, err)
}
