package capture

import (
	"math/rand/v2"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// perAltered is how many random values each tool is shown.
const perAltered = 3

// altered are the tools that get answers with random values, and how.
var altered = []struct {
	diag  []string
	alter func(*rand.Rand) func(*Frame)
}{
	{[]string{"smpquery", "-D", "nodeinfo", "0,1"}, alterNodeInfo},
	{[]string{"smpquery", "-D", "switchinfo", "0,1"}, alterAny[mad.SwitchInfo](mad.AttrSwitchInfo)},
	{[]string{"smpquery", "-D", "portinfo", "0,1", "4"}, alterPortInfo},
	{[]string{"smpquery", "-D", "pkeys", "0,1,2"}, alterAny[mad.PKeyTable](mad.AttrPKeyTable)},
	{[]string{"smpquery", "-D", "sl2vl", "0,1,2"}, alterAny[mad.SLtoVLMappingTable](mad.AttrSLtoVLMappingTable)},
	{[]string{"smpquery", "-D", "vlarb", "0,1", "2"}, alterAny[mad.VLArbitration](mad.AttrVLArbitration)},
	{[]string{"smpquery", "-D", "guidinfo", "0,1,2"}, alterAny[mad.GUIDInfo](mad.AttrGUIDInfo)},
	{[]string{"smpquery", "-D", "mepi", "0,1", "2"}, alterAny[mad.MlnxExtendedPortInfo](mad.AttrMlnxExtendedPortInfo)},
}

// alterAny puts a random value into every answer about the attribute.
func alterAny[T any](a mad.AttrID) func(*rand.Rand) func(*Frame) {
	return alterBy(a, func(*rand.Rand, *T) {})
}

// alterBy does the same and corrects the value by fix.
func alterBy[T any](a mad.AttrID, fix func(*rand.Rand, *T)) func(*rand.Rand) func(*Frame) {
	return func(r *rand.Rand) func(*Frame) {
		return func(f *Frame) {
			m := f.mad()
			if f.ToSim || m.Attr() != a || m.Method() != mad.MethodGetResp {
				return
			}
			var v T
			mad.Fill(&v, r.Uint64)
			fix(r, &v)
			if err := mad.Encode(m.Data(), &v); err != nil {
				panic(err)
			}
		}
	}
}

var alterNodeInfo = alterBy(mad.AttrNodeInfo, func(r *rand.Rand, v *mad.NodeInfo) {
	v.NodeType = ib.NodeType(1 + r.IntN(3))
})

var alterPortInfo = alterBy(mad.AttrPortInfo, printable)

// printable keeps to values that infiniband-diags have words for.
func printable(r *rand.Rand, v *mad.PortInfo) {
	v.LinkWidthEnabled = ib.LinkWidth(1 + r.IntN(31))
	v.LinkWidthSupported = ib.LinkWidth(1 + r.IntN(31))
	v.LinkWidthActive = 1 << r.IntN(5)
	v.LinkSpeedSupported = ib.LinkSpeed(1 + r.IntN(7))
	v.LinkSpeedEnabled = ib.LinkSpeed(1 + r.IntN(7))
	v.LinkSpeedActive = 1 << r.IntN(3)
	v.PortState = ib.PortState(1 + r.IntN(4))
	v.PortPhysicalState = ib.PhysState(1 + r.IntN(7))
	v.LinkDownDefaultState = ib.PhysState(1 + r.IntN(2))
	v.NeighborMTU = ib.MTU(1 + r.IntN(5))
	v.MTUCap = ib.MTU(1 + r.IntN(5))
	v.VLCap = ib.VLCap(1 + r.IntN(5))
	v.OperationalVLs = ib.VLCap(1 + r.IntN(5))
	v.LinkSpeedExtActive = 1 << r.IntN(4)
	v.LinkSpeedExtSupported = ib.LinkSpeedExt(1 + r.IntN(15))
	v.LinkSpeedExtEnabled = uint8(1 + r.IntN(15))
}

func TestAlterChangesAnswersOnly(t *testing.T) {
	var f Frame
	mad.NewSMP(f.mad(), mad.Header{Method: mad.MethodGet, Attr: mad.AttrPortInfo}, nil, ib.MKey{})
	f.ToSim = true
	change := alterPortInfo(rand.New(rand.NewPCG(1, 1)))
	before := f
	if change(&f); f != before {
		t.Error("a request was altered")
	}
	f.ToSim = false
	f.mad().Respond(mad.StatusOK)
	before = f
	if change(&f); f == before {
		t.Error("an answer was not altered")
	}
}
