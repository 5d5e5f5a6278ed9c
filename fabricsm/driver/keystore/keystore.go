// Package keystore keeps the keys of a subnet manager in the same store as its other facts, sealed by a vault: the store, a
// file or etcd, gets no key in clear. Facts that are not about keys pass through.
package keystore

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/vault"
)

// Keeper is the store behind, as a driver knows it: Load returns all facts in the order they were saved, Save makes facts
// durable before it returns.
type Keeper interface {
	Load() ([]sm.Fact, error)
	Save([]sm.Fact) error
}

// Store is a driver.Store in front of another.
type Store struct {
	inner  Keeper
	vault  *vault.Vault
	random io.Reader
	opened atomic.Pointer[[]sm.Fact] // what Open has read, until it is loaded or something is saved: to read a great store takes seconds
}

// Open opens the vault in a store under a root. A store that has neither vault
// nor keys gets one.
func Open(inner Keeper, root vault.Root, random io.Reader) (*Store, error) {
	facts, err := inner.Load()
	if err != nil {
		return nil, err
	}
	s := &Store{inner: inner, random: random}
	found := false
	for i := range facts {
		switch f := &facts[i]; {
		case f.Kind == sm.FactVault:
			s.vault, err = vault.Open([]byte(f.Sealed), root, random)
			s.opened.Store(&facts)
			return s, err
		case f.Sealed != "":
			found = true
		}
	}
	if found {
		return nil, errors.New("the store has sealed keys and no header of a vault: restore it whole from a backup, or recover the keys from the escrow kit")
	}
	if s.vault, err = vault.Create(root, random); err != nil {
		return nil, err
	}
	check, err := vault.DrawCheckKey(random)
	if err != nil {
		return nil, err
	}
	if err := s.saveHeader(); err != nil {
		return nil, err
	}
	return s, s.saveSecret(sm.FactCheck, vault.CheckName, check.Reveal())
}

// Check reports whether root opens the vault among the facts of a store. It creates
// nothing: found is false, without an error, where there is no vault yet.
func Check(facts []sm.Fact, root vault.Root, random io.Reader) (found bool, _ error) {
	for i := range facts {
		if facts[i].Kind == sm.FactVault {
			_, err := vault.Open([]byte(facts[i].Sealed), root, random)
			return true, err
		}
	}
	return false, nil
}

func (s *Store) saveSecret(kind sm.FactKind, name string, secret []byte) error {
	sealed, err := s.vault.Seal(name, 0, secret)
	if err != nil {
		return err
	}
	return s.save([]sm.Fact{{Kind: kind, Sealed: sealed}})
}

func (s *Store) saveHeader() error {
	return s.save([]sm.Fact{{Kind: sm.FactVault, Sealed: string(s.vault.Header())}})
}

// Load returns all facts, those about keys opened. It fails if one does not open: without its key a device would be locked.
func (s *Store) Load() ([]sm.Fact, error) {
	facts, err := s.read()
	if err != nil {
		return nil, err
	}
	s.opened.Store(nil)
	parts := slices.Collect(slices.Chunk(facts, max(1, (len(facts)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))))
	opened, failed := make([][]sm.Fact, len(parts)), make([][]error, len(parts))
	var group sync.WaitGroup
	for i, part := range parts {
		group.Go(func() { opened[i], failed[i] = s.open(part) })
	}
	group.Wait()
	if errs := slices.Concat(failed...); len(errs) > 0 {
		return nil, fmt.Errorf("%d of the keys do not open: %w", len(errs), errors.Join(errs[:min(len(errs), 20)]...))
	}
	return slices.Concat(opened...), nil
}

// open returns facts with their secrets opened, without those that are of the vault alone, and why others did not open.
func (s *Store) open(facts []sm.Fact) (out []sm.Fact, errs []error) {
	out = make([]sm.Fact, 0, len(facts))
	for _, f := range facts {
		kind, isKey := f.Kind.KeyKind()
		switch {
		case f.Kind == sm.FactVault || f.Kind == sm.FactMaster || f.Kind == sm.FactCheck:
			continue
		case isKey:
			r, err := s.vault.OpenRecord(kind, f.GUID, f.Sealed)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			f.Key, f.Sealed = &r, ""
		case f.Kind.OfSA() && f.Sealed != "":
			body, _, err := s.vault.Open(privateName(&f), f.Sealed)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			f.Private, f.Sealed = ib.NewSecretText(string(body)), ""
		}
		out = append(out, f)
	}
	return out, errs
}

// read returns the facts as they are stored. The result is not to be changed.
func (s *Store) read() ([]sm.Fact, error) {
	if facts := s.opened.Load(); facts != nil {
		return *facts, nil
	}
	return s.inner.Load()
}

// save keeps sealed facts.
func (s *Store) save(facts []sm.Fact) error {
	s.opened.Store(nil)
	return s.inner.Save(facts)
}

// Save seals the facts about keys, and keeps all.
func (s *Store) Save(facts []sm.Fact) error {
	out := make([]sm.Fact, len(facts))
	for i, f := range facts {
		if _, isKey := f.Kind.KeyKind(); isKey {
			if f.Key == nil || sm.KeyFact(f.Key.Kind) != f.Kind || f.Key.GUID != f.GUID {
				return fmt.Errorf("save %s of %v: the fact is about another key, or none", f.Kind, f.GUID)
			}
			sealed, err := s.vault.SealRecord(*f.Key)
			if err != nil {
				return fmt.Errorf("save %s of %v: %w", f.Kind, f.GUID, err)
			}
			f.Key, f.Sealed = nil, sealed
		}
		if !f.Private.IsZero() {
			sealed, err := s.vault.Seal(privateName(&f), 0, []byte(f.Private.Reveal()))
			if err != nil {
				return fmt.Errorf("save %s %s: %w", f.Kind, f.Name, err)
			}
			f.Private, f.Sealed = ib.SecretText{}, sealed
		}
		out[i] = f
	}
	return s.save(out)
}

// Seals says that secrets may be saved here.
func (s *Store) Seals() bool { return true }

// privateName binds a sealed secret to the fact that holds it.
func privateName(f *sm.Fact) string { return string(f.Kind) + "/" + f.Name }

// Master returns the master of derived keys. If there is none yet, one is drawn and made durable before Master returns.
func (s *Store) Master() (keys.Master, error) {
	facts, err := s.read()
	if err != nil {
		return keys.Master{}, err
	}
	if i := slices.IndexFunc(facts, func(f sm.Fact) bool { return f.Kind == sm.FactMaster }); i >= 0 {
		return s.vault.OpenMaster(facts[i].Sealed)
	}
	for i := range facts {
		if _, isKey := facts[i].Kind.KeyKind(); isKey {
			if err := s.notDerived(&facts[i]); err != nil {
				return keys.Master{}, err
			}
		}
	}
	m, err := keys.DrawMaster(s.random)
	if err != nil {
		return keys.Master{}, err
	}
	return m, s.SetMaster(m)
}

// notDerived refuses to draw a master where keys of an earlier one are.
func (s *Store) notDerived(f *sm.Fact) error {
	kind, _ := f.Kind.KeyKind()
	r, err := s.vault.OpenRecord(kind, f.GUID, f.Sealed)
	if err != nil {
		return err
	}
	for _, h := range []keys.Held{r.Current, r.Pending, r.Previous} {
		if h.Origin == keys.OriginDerived {
			return fmt.Errorf("%v of %v was derived from a master that the store does not have: recover it from the escrow kit", kind, f.GUID)
		}
	}
	return nil
}

// SetMaster keeps a master, such as one from an escrow kit.
func (s *Store) SetMaster(m keys.Master) error {
	return s.saveSecret(sm.FactMaster, vault.MasterName, m.Reveal())
}

// Rewrap puts the vault under another root; see vault.Vault.
func (s *Store) Rewrap(root vault.Root) error {
	if err := s.vault.Rewrap(root); err != nil {
		return err
	}
	return s.saveHeader()
}

// Rekey replaces the key of the vault and seals everything again. It may be interrupted anywhere, and done again.
func (s *Store) Rekey(root vault.Root) error {
	facts, err := s.Load()
	if err != nil {
		return err
	}
	if err := s.vault.Rekey(root); err != nil {
		return err
	}
	if err := s.saveHeader(); err != nil {
		return err
	}
	again := facts[:0]
	for _, f := range facts {
		if f.Key != nil || !f.Private.IsZero() {
			again = append(again, f)
		}
	}
	if err := s.Save(again); err != nil {
		return err
	}
	if err := s.resealSecrets(); err != nil {
		return err
	}
	s.vault.Forget()
	return s.saveHeader()
}

// resealSecrets seals secrets other than records of keys.
func (s *Store) resealSecrets() error {
	facts, err := s.inner.Load()
	if err != nil {
		return err
	}
	names := map[sm.FactKind]string{sm.FactMaster: vault.MasterName, sm.FactCheck: vault.CheckName}
	for i := range facts {
		name := names[facts[i].Kind]
		if name == "" {
			continue
		}
		secret, _, err := s.vault.Open(name, facts[i].Sealed)
		if err != nil {
			return err
		}
		if err := s.saveSecret(facts[i].Kind, name, secret); err != nil {
			return err
		}
	}
	return nil
}
