package locks

import (
	"context"
	"crypto"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"portcullis/api/inventory"
	"portcullis/api/locks/lockkey"
	"portcullis/api/page"
	"portcullis/api/refusal"
	"portcullis/api/store"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
)

// Options configure a Service. Store and Root are required.
type Options struct {
	Store *store.Store
	Root  lockkey.Root
	// Site is the site's profile in YAML; empty: the one of the product.
	Site string
	// Signer has the site's key for settings; nil: settings are written plainly.
	Signer crypto.Signer
	Key    nvconfig.UUID // what adapters know that key by
	// Binding is what files are bound to at least; zero: to a challenge.
	Binding Binding
	Now     func() time.Time
}

// Service decides on the locks of adapters: which key of which epoch, which settings, and when one is opened permanently.
// Methods are safe for concurrent use. Refusals are *refusal.Error.
type Service struct {
	o       Options
	profile *profile.Profile
}

// New makes a Service.
func New(o Options) (*Service, error) {
	if o.Root.IsZero() {
		return nil, errors.New("locks of adapters: no root to derive keys from")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Service{o, profile.Default()}
	if o.Site != "" {
		var err error
		if s.profile, err = profile.Load([]byte(o.Site)); err != nil {
			return nil, fmt.Errorf("profile of settings: %w", err)
		}
	}
	return s, nil
}

func (s *Service) now() time.Time { return s.o.Now().UTC().Round(0) }

// Expect returns what the lock of each adapter of a host must be: under the key that was issued last, with the file that
// was made for it.
func (s *Service) Expect(ctx context.Context, r store.Reader, host *inventory.Host) (map[ib.GUID]attest.ExpectedLock, error) {
	out := map[ib.GUID]attest.ExpectedLock{}
	for _, h := range host.HCAs {
		rec, err := optional(Records().Get(ctx, r, h.NodeGUID.String()))
		if err != nil {
			return nil, err
		}
		out[h.NodeGUID] = attest.ExpectedLock{Epoch: uint64(rec.Epoch), File: rec.File, Leaves: rec.Open != nil}
	}
	return out, nil
}

// Judge compares the settings that a statement has with the profile. The agent did so too; its own result grants nothing.
func (s *Service) Judge(st *attest.Statement) *attest.Refusal {
	var wrong []string
	for i := range st.HCAs {
		h := &st.HCAs[i]
		method := profile.PlainWrites
		if h.Lock.Method == attest.LockSignedFile {
			method = profile.SignedFile
		}
		if method == profile.PlainWrites && s.o.Signer != nil {
			wrong = append(wrong, fmt.Sprintf("HCA %s: its settings were written plainly, and the site signs them", h.Name))
		}
		for _, f := range s.profile.Judge(cardOf(h), method).Findings {
			if f.Blocks {
				wrong = append(wrong, fmt.Sprintf("HCA %s: %s (%v): %s", h.Name, f.Parameter, f.Address, f.Text))
			}
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return &attest.Refusal{Code: attest.ReasonLock, Detail: strings.Join(wrong, "; ")}
}

// Version names profile and signing: what Judge depends on.
func (s *Service) Version() string {
	rules, err := json.Marshal(s.profile)
	if err != nil {
		return "" // a profile is plain data
	}
	sum := sha256.Sum256(fmt.Appendf(rules, " signed %t", s.o.Signer != nil))
	return hex.EncodeToString(sum[:])
}

// Prove notes in tx that evidence showed the locks that a statement has.
func (s *Service) Prove(ctx context.Context, tx *store.Tx, st *attest.Statement) error {
	for i := range st.HCAs {
		h := &st.HCAs[i]
		rec, err := optional(Records().Get(ctx, tx, h.NodeGUID.String()))
		if err != nil {
			return err
		}
		if err := s.compare(ctx, tx, st.Host, &rec, h); err != nil {
			return err
		}
		if rec.Epoch == 0 || h.Lock.MLOCK != attest.MLOCKLocked || h.Lock.Epoch != uint64(rec.Epoch) {
			continue // policy did not demand it
		}
		if err := s.tellRelocked(ctx, tx, st.Host, &rec, h); err != nil {
			return err
		}
		rec.Proven, rec.Shown, rec.Held, rec.Drawing = rec.Epoch, s.now(), heldOf(&h.Lock), false
		if err := Records().Put(tx, h.NodeGUID.String(), rec); err != nil {
			return err
		}
	}
	return nil
}

// cardOf returns an adapter of a statement as the profile judges it.
func cardOf(h *attest.HCA) profile.Card {
	c := profile.Card{PSID: h.PSID, Ports: infinibandPorts(h), Functions: 1, Readings: []profile.Reading{}}
	for i := range h.Lock.Items {
		c.Readings = append(c.Readings, readingOf(&h.Lock.Items[i]))
	}
	return c
}

func infinibandPorts(h *attest.HCA) (n int) {
	for _, p := range h.Ports {
		if p.LinkLayer == attest.LinkInfiniBand {
			n++
		}
	}
	return n
}

func readingOf(i *attest.Item) profile.Reading {
	r := profile.Reading{Address: addressOf(i)}
	switch i.Supported {
	case attest.Yes:
		r.Support = profile.Supported
	case attest.No:
		r.Support = profile.NotSupported
	case attest.Unknown:
	}
	r.Current, r.Next = answerOf(i, i.Current, nvconfig.Current), answerOf(i, i.Next, nvconfig.Next)
	return r
}

// answerOf returns a value as the adapter's answer.
func answerOf(i *attest.Item, text string, access nvconfig.Access) profile.Answer {
	data, err := hex.DecodeString(text)
	if err != nil || len(data) == 0 {
		return profile.Answer{State: profile.Failed, Problem: "the statement has no value"}
	}
	h := nvconfig.Header{Access: access, OverrideEnabled: i.Override != attest.No, Address: addressOf(i)}
	switch i.Priority {
	case attest.PriorityOEM:
		h.Priority = nvconfig.OEM
	case attest.PriorityMLNX:
		h.Priority = nvconfig.MLNX
	case attest.PriorityUnknown, attest.PriorityUser: // an unknown priority is no fault
	}
	return profile.Answer{State: profile.Read, Item: nvconfig.Item{Header: h, Data: data}}
}

func addressOf(i *attest.Item) nvconfig.Address {
	switch nvconfig.Class(i.Class).Family() {
	case nvconfig.Port:
		return nvconfig.PortItem(i.Port, uint16(i.Index))
	case nvconfig.Host:
		return nvconfig.HostItem(i.Host, i.Index)
	case nvconfig.HostFunction:
		return nvconfig.FunctionItem(i.Host, i.Function, uint16(i.Index))
	default:
		return nvconfig.GlobalItem(i.Index)
	}
}

// optional returns a record, the zero one where there is none.
func optional(rec store.Record[Record], err error) (Record, error) {
	if errors.Is(err, store.ErrNotFound) {
		return Record{}, nil
	}
	return rec.Value, err
}

func refuse(k refusal.Kind, code, hint, format string, args ...any) *refusal.Error {
	return &refusal.Error{Code: code, Status: k, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

func explain(err error) error {
	var e *refusal.Error
	if err == nil || errors.As(err, &e) || errors.Is(err, page.ErrCursor) {
		return err
	}
	return refusal.Unconfirmed(err, "look at the lock again: portcullis lock show GUID")
}
