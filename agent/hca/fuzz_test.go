package hca_test

import (
	"context"
	"testing"

	"portcullis/agent/hca"
	"portcullis/agent/hca/register"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// noise is firmware that answers with whatever comes next.
type noise struct{ b []byte }

func (n *noise) take(length int) []byte {
	out := make([]byte, length)
	n.b = n.b[copy(out, n.b):]
	return out
}

func (n *noise) Access(_ context.Context, _ register.ID, _ register.Method, data []byte) ([]byte, error) {
	if status := register.Status(n.take(1)[0] & 7); status != register.OK {
		return nil, refused(status)
	}
	return n.take(len(data)), nil
}

func (n *noise) VportContext(context.Context, uint8) (register.VportContext, error) {
	v := register.VportContext{NodeGUID: guid, SystemImageGUID: guid, PortGUID: guid}
	if n.take(1)[0]&1 == 0 {
		return v, nil
	}
	return register.Decode[register.VportContext](n.take(v.Size()))
}

func (n *noise) PKeys(context.Context, uint8) ([]ib.PKey, error) { return nil, nil }

// FuzzFirmware: whatever firmware answers, nothing is claimed of it beyond what
// it said as it must be said, and the statement can be written and read back.
func FuzzFirmware(f *testing.F) {
	f.Add([]byte{})
	mgir, err := register.Encode(goodChip().mgir)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append([]byte{0}, mgir...))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := hca.ReadDevice(t.Context(), function(), rdma(), &noise{b}, hca.FromFWCTL)
		v := d.Judge(goodSite())
		if v.Assurance > attest.AssuranceNone {
			life, _ := d.LifeCycle.Value()
			words, _ := d.Attributes.Value()
			if life != attest.LifeGASecured || words != "secure-fw" || len(d.Tokens) == 0 {
				t.Errorf("%v: life cycle %v, attributes %q, tokens %v", v.Assurance, life, words, d.Tokens)
			}
		}
		for _, fact := range []*hca.Fact[ib.GUID]{&d.NodeGUID, &d.SystemImageGUID, &d.Ports[0].GUID} {
			if g, ok := fact.Value(); !ok || !g.Valid() {
				return // Collect refuses such an adapter
			}
		}
		encoded(t, d.Statement(v))
	})
}
