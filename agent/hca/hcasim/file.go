package hcasim

import (
	"errors"
	"slices"

	"portcullis/agent/hca/register"
	"portcullis/firmware/nvconfig"
)

// fileVersions are those of the last file of each kind.
type fileVersions map[register.Component]uint32

// UniqueID is what a file for this device alone names: the base MAC at the end.
func (i Identity) UniqueID() [nvconfig.DeviceIDSize]byte { return nvconfig.DeviceID(i.BaseMAC) }

// applicable judges which devices a file is for, and who signed it.
func (c *Card) applicable(f *nvconfig.File) register.MCCError {
	named := slices.Contains(f.DeviceIDs(), c.o.Identity.UniqueID()) && !c.o.Traits.RefusesDevice
	if !slices.Contains(f.PSIDs(), c.o.Identity.PSID) && !named {
		return register.RejectedNotApplicable
	}
	purpose := SignsOEM
	switch {
	case f.Component.IsToken():
		purpose = SignsTokens
	case f.Component == nvconfig.MLNXConfig:
		purpose = SignsMLNX
	}
	_, err := f.Verify(c.keys(purpose))
	switch {
	case err == nil, errors.Is(err, nvconfig.ErrNotSigned) && f.Signature.Scheme == nvconfig.DigestOnly && c.o.Traits.AcceptsUnsigned:
		return register.MCCOK
	case errors.Is(err, nvconfig.ErrNotSigned):
		return register.RejectedUnsigned
	case errors.Is(err, nvconfig.ErrDigest):
		return register.RejectedDigest
	case errors.Is(err, nvconfig.ErrSignature):
		return register.RejectedAuthFailed
	case slices.ContainsFunc(c.o.Keys, func(k Key) bool { return k.UUID == f.Signature.Key }):
		return register.RejectedKeyNotApplicable
	}
	return register.RejectedUnknownKey
}

// keys are those that may sign something, the customer's among them.
func (c *Card) keys(p Purpose) (all []nvconfig.PinnedKey) {
	for _, k := range c.o.Keys {
		if k.Signs&p != 0 {
			all = append(all, nvconfig.PinnedKey{UUID: k.UUID, Public: k.Public})
		}
	}
	if k, ok := c.customerKey(); ok && p == SignsOEM {
		all = append(all, k)
	}
	return all
}

// judgeSettings judges a file of settings, whole: one that cannot be stored
// refuses all.
func (c *Card) judgeSettings(id register.Component, f *nvconfig.File) (func(), register.MCCError) {
	file, err := nvconfig.FileIDOf(f.Items[0])
	switch {
	case err != nil:
		return nil, register.RejectedBadFormat
	case file.Version < c.files[id] && !c.o.Traits.AcceptsOldFiles:
		return nil, register.RejectedForbiddenVersion
	}
	own := nvconfig.OEM
	if f.Component == nvconfig.MLNXConfig {
		own = nvconfig.MLNX
	}
	items := f.Settings()
	for n, i := range items {
		if !file.PerItem {
			items[n].Priority = own
		} else if own.Later(i.Priority) {
			return nil, register.RejectedBadFormat
		}
		if why := c.storable(items[n], file); why != register.MCCOK {
			return nil, why
		}
	}
	if why := c.sessions.judgeBinding(f); why != register.MCCOK {
		return nil, why
	}
	return func() { c.storeFile(id, file, own, items) }, register.MCCOK
}

// storable judges one item of a file.
func (c *Card) storable(i nvconfig.Item, file nvconfig.FileID) register.MCCError {
	slots := c.store.find(i.Address)
	if len(slots) == 0 {
		return register.RejectedNotApplicable
	}
	for _, a := range slots {
		slot := c.store.slots[a]
		switch {
		case len(i.Data) != len(slot.factory):
			return register.RejectedBadFormat
		case slot.burned, !slot.lets(i.Priority), file.DisableOverride && slot.next != nil:
			return register.RejectedNotApplicable
		}
	}
	return register.MCCOK
}

// storeFile stores a file item by item. A loss of power in between leaves what
// was stored until then: nothing published says that firmware does better.
func (c *Card) storeFile(id register.Component, file nvconfig.FileID, own nvconfig.Priority, items []nvconfig.Item) {
	named := map[nvconfig.Address]bool{}
	for _, i := range items {
		for _, a := range c.store.find(i.Address) {
			named[a] = true
		}
	}
	for _, a := range c.store.order {
		next := c.store.slots[a].next
		if next == nil || named[a] {
			continue
		}
		if file.EraseLower && next.Priority.Later(own) || !file.KeepSame && next.Priority == own {
			c.store.drop(a)
		}
	}
	for _, i := range items {
		for _, a := range c.store.find(i.Address) {
			c.store.put(a, i)
		}
	}
	c.power.durable(func() { c.files[id] = file.Version })
}
