package registrytest

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa/registry"
	"portcullis/fabricsm/sm"
)

// Ports and partitions of Tenants.
const (
	Alice ib.GUID = 0x101
	Alan  ib.GUID = 0x102 // of Alice's tenant, too
	Bob   ib.GUID = 0x201
	Lim   ib.GUID = 0x301 // limited in Alice's
	VPort ib.GUID = 0x1111

	TenantA ib.PKey = 0x8001
	TenantB ib.PKey = 0x8002
)

// Tenants returns a fabric of two tenants. VPort is an alias of Alice.
func Tenants() *Fabric {
	f := New()
	f.Add(Alice, TenantA, 0x7fff).Aliases = []ib.GUID{VPort}
	f.Add(Alan, TenantA, 0x7fff)
	f.Add(Bob, TenantB, 0x7fff)
	f.Add(Lim, TenantA.Limited(), 0x7fff)
	return f
}

// Saved has the saved facts of a registry, by kind and name.
type Saved map[string]sm.Fact

// Take saves facts, and removes those that they delete.
func (s Saved) Take(facts []sm.Fact) {
	for _, f := range facts {
		if name := string(f.Kind) + f.Name; f.TakesBack() {
			delete(s, name)
		} else {
			s[name] = f
		}
	}
}

// Next lets a cursor write its next record. It returns false if there is none left.
func Next(c registry.Cursor, dst []byte) (n int, ok bool) {
	for done := false; n == 0 && !done; {
		n, done = c.Step(dst, 1<<20)
	}
	return n, n > 0
}
