package measuredboot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"portcullis/api/attestation"
	"portcullis/api/audit"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
	"portcullis/fabricsm/topospec/approval"
)

// Bounds of what is kept and sent.
const (
	maxHosts = 32
	maxLogs  = 4
	maxText  = 512
	maxKept  = 100 // sets of a class; the oldest that is over is dropped first
)

// Options configure a Service. Store, Log and PCRs are required.
type Options struct {
	Store *store.Store
	Log   *slog.Logger
	// PCRs are the registers that hosts quote, without the agent's, ascending.
	PCRs []int
	// Approval defines which operators may approve a set.
	Approval approval.Rule
	Now      func() time.Time // time.Now when nil
}

// Service keeps reference values. Methods are safe for concurrent use. Refusals
// are *refusal.Error.
type Service struct{ o Options }

// New makes a Service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{o: o}
}

func (s *Service) now() time.Time { return s.o.Now().UTC().Round(0) }

// List returns the sets of a class, of all when it is "", without their values.
func (s *Service) List(ctx context.Context, class string) (*v1.References, error) {
	prefix := ""
	if class != "" {
		if err := reference.CheckClass(class); err != nil {
			return nil, invalid("class_invalid", err)
		}
		prefix = class + "/"
	}
	list, _, err := attestation.References().List(ctx, s.o.Store, prefix)
	if err != nil {
		return nil, explain(err)
	}
	out := &v1.References{Items: make([]v1.Reference, 0, len(list))}
	for i := range list {
		v := s.view(&list[i].Value)
		v.Registers = nil
		out.Items = append(out.Items, *v)
	}
	return out, nil
}

// Show returns one set.
func (s *Service) Show(ctx context.Context, class string, version uint64) (*v1.Reference, error) {
	set, err := get(ctx, s.o.Store, class, version)
	if err != nil {
		return nil, explain(err)
	}
	return s.view(set), nil
}

func (s *Service) view(set *reference.Set) *v1.Reference {
	now := s.now()
	v := &v1.Reference{
		Name: set.Name(), Class: set.Class, Version: set.Version, State: string(set.State), InForce: set.Valid(now), Waiver: set.Waiver,
		Owner: set.Owner, Made: set.Made, Source: set.Source, Reason: set.Reason, Approver: set.Approver, Trusted: set.Trusted,
		Expires: set.Expires, Registers: set.Registers,
	}
	if set.State == reference.Approved && !v.InForce {
		v.State = "expired"
	}
	return v
}

// get reads a set, for which it refuses a name that can be none.
func get(ctx context.Context, r store.Reader, class string, version uint64) (*reference.Set, error) {
	unknown := refuse(refusal.NotFound, "reference_unknown", "portcullis reference list", "no reference values %.80s/%d", class, version)
	if reference.CheckClass(class) != nil {
		return nil, unknown
	}
	rec, err := attestation.References().Get(ctx, r, attestation.ReferenceKey(class, version))
	if errors.Is(err, store.ErrNotFound) {
		return nil, unknown
	}
	if err != nil {
		return nil, err
	}
	return &rec.Value, nil
}

// Learn makes a draft of what hosts measured, of event logs, or of what was predicted.
func (s *Service) Learn(ctx context.Context, actor string, in v1.NewReference) (*v1.Reference, error) {
	if err := checkNew(&in); err != nil {
		return nil, err
	}
	var logs []reference.Boot
	for i, b := range in.Logs {
		boot, err := s.bootOf(b)
		if err != nil {
			return nil, refuse(refusal.Invalid, "event_log", "take it from /sys/kernel/security/tpm0/binary_bios_measurements", "log %d: %v", i+1, err)
		}
		logs = append(logs, boot)
	}
	return s.add(ctx, actor, "learn", func(tx *store.Tx, set *reference.Set) error {
		set.Class, set.Reason, set.Source = in.Class, in.Reason, source(&in)
		if in.Predicted != nil {
			return s.predicted(&in, set)
		}
		boots, err := bootsOf(ctx, tx, in.Class, in.Hosts)
		if err != nil {
			return err
		}
		var base []reference.Register
		if in.Base != 0 {
			from, err := get(ctx, tx, in.Class, in.Base)
			if err != nil {
				return err
			}
			if from.Waiver {
				return refuse(refusal.Conflict, "reference_waiver", "begin with a set that was learned", "%s is a waiver, which has no values", from.Name())
			}
			base = from.Registers
		}
		if set.Registers, err = reference.Learn(base, append(boots, logs...)); err != nil {
			return refuse(refusal.Conflict, "not_learned", "learn from a boot that is complete, or fewer at once", "learn: %v", err)
		}
		return ignore(set.Registers, in.Ignore)
	})
}

func checkNew(in *v1.NewReference) error {
	in.Reason = strings.TrimSpace(in.Reason)
	if err := reference.CheckClass(in.Class); err != nil {
		return invalid("class_invalid", err)
	}
	switch {
	case in.Reason == "" || len(in.Reason) > maxText:
		return noReason()
	case in.Predicted != nil && (len(in.Hosts)+len(in.Logs) > 0 || in.Base != 0):
		return refuse(refusal.Invalid, "source_many", "name one of them", "values that were predicted are not learned of hosts, logs or a base as well")
	case in.Predicted != nil:
		return checkPrediction(in.Predicted)
	case len(in.Hosts)+len(in.Logs) == 0:
		return refuse(refusal.Invalid, "source_missing", "name hosts that were refused, or event logs", "nothing to learn from")
	case len(in.Hosts) > maxHosts || len(in.Logs) > maxLogs:
		return refuse(refusal.Invalid, "source_many", "learn a set of some of them, and go on with it as base", "%d hosts and %d logs, at most %d and %d", len(in.Hosts), len(in.Logs), maxHosts, maxLogs)
	default:
		return nil
	}
}

func checkPrediction(p *v1.Prediction) error {
	p.Image = strings.TrimSpace(p.Image)
	if p.Image == "" || len(p.Image) > maxText || len(p.Registers) > eventlog.NumPCRs {
		return refuse(refusal.Invalid, "prediction_invalid", "send what portcullis reference predict wrote",
			"a prediction of %d registers, of %.80q: want at most %d registers, and the name of an image", len(p.Registers), p.Image, eventlog.NumPCRs)
	}
	return nil
}

// predicted takes the registers that hosts quote out of a prediction.
func (s *Service) predicted(in *v1.NewReference, set *reference.Set) error {
	for _, pcr := range s.o.PCRs {
		at := slices.IndexFunc(in.Predicted.Registers, func(r reference.Register) bool { return r.PCR == pcr })
		if at < 0 {
			return refuse(refusal.Conflict, "not_predicted", "name what is known of the platform to portcullis reference predict: --log or --base",
				"hosts quote PCR %d, of which nothing was predicted", pcr)
		}
		set.Registers = append(set.Registers, in.Predicted.Registers[at])
	}
	return ignore(set.Registers, in.Ignore)
}

func ignore(registers []reference.Register, positions []v1.ReferencePosition) error {
	for _, p := range positions {
		if err := reference.Ignore(registers, p.PCR, p.Position); err != nil {
			return invalid("not_ignorable", err)
		}
	}
	return nil
}

func source(in *v1.NewReference) string {
	if in.Predicted != nil {
		return "predicted of " + in.Predicted.Image
	}
	var parts []string
	if in.Base != 0 {
		parts = append(parts, fmt.Sprintf("%s/%d", in.Class, in.Base))
	}
	if len(in.Hosts) > 0 {
		parts = append(parts, "hosts "+strings.Join(in.Hosts, ", "))
	}
	if n := len(in.Logs); n > 0 {
		parts = append(parts, fmt.Sprintf("%d event logs", n))
	}
	return strings.Join(parts, "; ")
}

// bootOf makes a boot of a log, as if its registers were quoted.
func (s *Service) bootOf(b []byte) (reference.Boot, error) {
	l, err := eventlog.Parse(b)
	if err != nil {
		return reference.Boot{}, err
	}
	boot := reference.Boot{Log: l}
	all := l.Replay()
	for _, pcr := range s.o.PCRs {
		boot.Quoted = append(boot.Quoted, eventlog.Quoted{PCR: pcr, Value: all[pcr]})
	}
	return boot, nil
}

// bootsOf returns the boots of hosts, all of which must be of the class.
func bootsOf(ctx context.Context, r store.Reader, class string, hosts []string) ([]reference.Boot, error) {
	var out []reference.Boot
	for _, h := range hosts {
		rec, err := bootRecord(ctx, r, h)
		if err != nil {
			return nil, err
		}
		host, err := inventory.Hosts().Get(ctx, r, h)
		if err == nil && host.Value.ReferenceClass() != class {
			err = refuse(refusal.Conflict, "other_class", "learn a set of its class, or assign this one in the inventory",
				"host %s is of class %s in the inventory, not of %s", h, host.Value.ReferenceClass(), class)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, rec.Boot())
	}
	return out, nil
}

func bootRecord(ctx context.Context, r store.Reader, host string) (*attestation.MeasuredBoot, error) {
	rec, err := attestation.MeasuredBoots().Get(ctx, r, host)
	if errors.Is(err, store.ErrNotFound) {
		return nil, refuse(refusal.NotFound, "boot_unknown", "assign the host and run its agent: what it measured is kept if it is refused for it",
			"host %.80q has shown no boot that differs from its class", host)
	}
	if err != nil {
		return nil, err
	}
	return &rec.Value, nil
}

// Waive makes the draft of a waiver.
func (s *Service) Waive(ctx context.Context, actor string, in v1.NewWaiver) (*v1.Reference, error) {
	if err := reference.CheckClass(in.Class); err != nil {
		return nil, invalid("class_invalid", err)
	}
	in.Reason = strings.TrimSpace(in.Reason)
	if in.Reason == "" || len(in.Reason) > maxText {
		return nil, noReason()
	}
	return s.add(ctx, actor, "waive", func(_ *store.Tx, set *reference.Set) error {
		set.Class, set.Reason, set.Waiver, set.Expires = in.Class, in.Reason, true, in.Expires.UTC().Round(0)
		if !s.now().Before(set.Expires) {
			return refuse(refusal.Invalid, "waiver_over", "say when it ends: --expires", "the waiver would be over at once")
		}
		return nil
	})
}

// add keeps a draft that fill completes, as the next version of its class.
func (s *Service) add(ctx context.Context, actor, action string, fill func(*store.Tx, *reference.Set) error) (*v1.Reference, error) {
	set := &reference.Set{}
	_, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
		*set = reference.Set{State: reference.Draft, Owner: actor, Made: s.now()}
		if err := fill(tx, set); err != nil {
			return err
		}
		if err := s.number(ctx, tx, set); err != nil {
			return err
		}
		if err := set.Check(); err != nil {
			return invalid("reference_invalid", err)
		}
		return s.put(ctx, tx, nil, set, actor, action, set.Reason)
	})
	if err != nil {
		return nil, explain(err)
	}
	return s.view(set), nil
}

// number assigns a draft its version, and makes room.
func (s *Service) number(ctx context.Context, tx *store.Tx, set *reference.Set) error {
	all, err := attestation.ReferencesOf(ctx, tx, set.Class)
	if err != nil {
		return err
	}
	set.Version = 1
	if n := len(all); n > 0 {
		set.Version = all[n-1].Version + 1
	}
	if len(all) < maxKept {
		return nil
	}
	for i := range all[:len(all)-1] {
		if old := &all[i]; old.State == reference.Ended || old.State == reference.Approved && !old.Valid(s.now()) {
			attestation.References().Delete(tx, attestation.ReferenceKey(old.Class, old.Version))
			return nil
		}
	}
	return refuse(refusal.Conflict, "reference_full", "end those that no host needs: portcullis reference expire", "class %s has %d sets", set.Class, len(all))
}

func (s *Service) put(ctx context.Context, tx *store.Tx, was, set *reference.Set, actor, action, detail string) error {
	before := ""
	if was != nil {
		var err error
		if before, err = audit.Digest(*was); err != nil {
			return err
		}
	}
	after, err := audit.Digest(*set)
	if err != nil {
		return err
	}
	code := string(set.State)
	if set.Waiver {
		code += " waiver"
	}
	s.o.Log.Warn("reference values of measured boots", "set", set.Name(), "step", action, "state", set.State, "waiver", set.Waiver, "actor", actor, "why", detail)
	return errors.Join(
		attestation.References().Put(tx, attestation.ReferenceKey(set.Class, set.Version), *set),
		audit.Append(ctx, tx, audit.Entry{
			Time: s.now(), Actor: actor, Action: "reference." + action, Object: "reference/" + set.Name(), Code: code,
			Detail: detail, Before: before, After: after,
		}),
	)
}

func noReason() error {
	return refuse(refusal.Invalid, "reason_missing", "say it in a few words, for those who approve", "no reason of at most %d characters is given", maxText)
}

func refuse(k refusal.Kind, code, hint, format string, args ...any) error {
	return &refusal.Error{Code: code, Status: k, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

func invalid(code string, err error) error {
	return &refusal.Error{Code: code, Status: refusal.Invalid, Detail: err.Error(), Hint: "docs/understand/measured-boot.md says what a set may have", Err: err}
}

// explain turns errors of the store into refusals.
func explain(err error) error {
	if _, ours := errors.AsType[*refusal.Error](err); ours || err == nil {
		return err
	}
	return refusal.Unconfirmed(err, "portcullis reference list shows whether it was done; then try again")
}
