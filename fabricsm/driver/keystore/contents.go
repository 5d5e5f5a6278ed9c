package keystore

import (
	"errors"
	"slices"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/vault"
)

// Contents is all about keys that a store holds, opened.
type Contents struct {
	Vault   string // name of the vault
	Master  keys.Master
	Check   vault.CheckKey
	Records []keys.Record
	Cycles  []keys.Cycle
	// Behind says which switch is behind a port, by the GUID of its port 0; at port 0 of a
	// switch, the GUID of that port. Without it no switch but the nearest is shown its key.
	Behind map[ib.Place]ib.GUID
}

// ErrNoVault is returned where no subnet manager has put keys yet.
var ErrNoVault = errors.New("these facts have no vault: the subnet manager that wrote them manages no keys")

// Read opens what stored facts say of keys, without a store: for a backup or a
// rehearsal beside a running subnet manager. The error is ErrNoVault where there are none.
func Read(facts []sm.Fact, root vault.Root) (*Contents, error) {
	if !slices.ContainsFunc(facts, func(f sm.Fact) bool { return f.Kind == sm.FactVault }) {
		return nil, ErrNoVault
	}
	s, err := Open(frozen(facts), root, nil)
	if err != nil {
		return nil, err
	}
	opened, err := s.Load()
	if err != nil {
		return nil, err
	}
	c := &Contents{Vault: s.vault.ID(), Behind: make(map[ib.Place]ib.GUID)}
	for _, f := range opened {
		if f.Key != nil {
			c.Records = append(c.Records, *f.Key)
		}
		if f.Cycle != nil {
			c.Cycles = append(c.Cycles, *f.Cycle)
		}
	}
	keys.SortRecords(c.Records)
	for i := range facts {
		switch facts[i].Kind {
		case sm.FactBehind:
			c.Behind[ib.Place{Switch: facts[i].GUID, Port: facts[i].Port}] = facts[i].Behind
		case sm.FactMaster:
			if c.Master, err = s.vault.OpenMaster(facts[i].Sealed); err != nil {
				return nil, err
			}
		case sm.FactCheck:
			b, _, err := s.vault.Open(vault.CheckName, facts[i].Sealed)
			if err != nil {
				return nil, err
			}
			if c.Check, err = vault.NewCheckKey(b); err != nil {
				return nil, err
			}
		default:
		}
	}
	return c, nil
}

// ReadCheck returns the name of the vault among stored facts, and its check key. No key of a device is opened.
func ReadCheck(facts []sm.Fact, root vault.Root) (string, vault.CheckKey, error) {
	own := slices.DeleteFunc(slices.Clone(facts), func(f sm.Fact) bool { return f.Kind != sm.FactVault && f.Kind != sm.FactCheck })
	c, err := Read(own, root)
	if err != nil {
		return "", vault.CheckKey{}, err
	}
	return c.Vault, c.Check, nil
}

// Restore writes contents into an empty store, such as those of an escrow kit:
// with a new vault, and the same check key.
func (s *Store) Restore(c *Contents) error {
	had, err := s.Load()
	if err != nil {
		return err
	}
	if len(had) > 0 {
		return errors.New("restore keys: the store is not empty")
	}
	var facts []sm.Fact
	for _, r := range c.Records {
		facts = append(facts, sm.KeyFactOf(r))
	}
	for _, cycle := range c.Cycles {
		facts = append(facts, sm.RotationFactOf(cycle))
	}
	for at, guid := range c.Behind {
		facts = append(facts, sm.Fact{Kind: sm.FactBehind, GUID: at.Switch, Port: at.Port, Behind: guid})
	}
	if err := s.Save(facts); err != nil {
		return err
	}
	if !c.Master.IsZero() {
		if err := s.SetMaster(c.Master); err != nil {
			return err
		}
	}
	return s.saveSecret(sm.FactCheck, vault.CheckName, c.Check.Reveal())
}

// frozen is a store that cannot be written.
type frozen []sm.Fact

var errFrozen = errors.New("these facts are only read")

func (f frozen) Load() ([]sm.Fact, error) { return append([]sm.Fact(nil), f...), nil }
func (f frozen) Save([]sm.Fact) error     { return errFrozen }
