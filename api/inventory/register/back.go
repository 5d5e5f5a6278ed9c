package register

import (
	"context"
	"errors"
	"fmt"
	"time"

	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
)

// comeBack refuses hosts that were removed and are to come back with another EK though evidence of them was accepted. It
// deletes the record of the removal of each other host.
func (s *Service) comeBack(ctx context.Context, tx *store.Tx, added []inventory.Host) error {
	var problems []string
	for i := range added {
		h := &added[i]
		rec, err := store.Optional(hostrecord.Records().Get(ctx, tx, h.ID))
		if err != nil {
			return err
		}
		if rec.Removed == nil {
			continue
		}
		known, err := isKnown(ctx, tx, h.ID)
		if err != nil {
			return err
		}
		if known && rec.Removed.EK != h.EK {
			problems = append(problems, fmt.Sprintf("host %s was removed on %s and had the EK %s", h.ID, rec.Removed.Time.Format(time.DateOnly), rec.Removed.EK))
			continue
		}
		rec.Removed = nil
		if err := hostrecord.Records().Put(tx, h.ID, rec); err != nil {
			return err
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &refusal.Error{
		Code: "repair_needed", Status: refusal.Conflict, Problems: problems,
		Detail: "that a host which was accepted before has another EK is for two persons to say; nothing was imported",
		Hint:   "choose another id for the new host; or import it with the EK it had, and then the other one with --ticket",
	}
}

// NothingStaged refuses a host of which a change waits for a second person.
func NothingStaged(ctx context.Context, r store.Reader, host string) error {
	_, err := Repairs().Get(ctx, r, host)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return refusal.New(refusal.Conflict, "repair_open", "portcullis inventory repair cancel "+host, "a change of host %s waits for a second person", host)
}
