package mad

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// readComponents reads the published lists, by the name of the record's type.
func readComponents(t *testing.T) map[string][]Component {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "components.txt"))
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string][]Component{}
	for _, part := range strings.Split(string(text), "\n= ")[1:] {
		name, rest, _ := strings.Cut(part, "\n")
		for line := range strings.Lines(strings.TrimSpace(rest)) {
			var n int
			var c Component
			if _, err := fmt.Sscanf(line, "%d %d %d %s", &n, &c.Bit, &c.Width, &c.Name); err != nil || n != len(lists[name]) {
				t.Fatalf("%s: %q: %v, want number %d", name, line, err, len(lists[name]))
			}
			if c.Name == "-" {
				c.Name, c.Reserved = "", true
			}
			lists[name] = append(lists[name], c)
		}
	}
	return lists
}

// TestComponentsArePublishedLists: every list is the published one, and tiles its record.
func TestComponentsArePublishedLists(t *testing.T) {
	lists := readComponents(t)
	for _, a := range recordAttrs {
		l := saLayout(a)
		got := Components(a)
		if d := cmp.Diff(lists[l.Name()], got); d != "" {
			t.Errorf("%s (-published +ours):\n%s", l.Name(), d)
		}
		delete(lists, l.Name())
		next := 0
		for i, c := range got {
			if c.Bit != next || c.Width <= 0 || c.Reserved != (c.Name == "") {
				t.Errorf("%s component %d %+v, want it to begin at bit %d", l.Name(), i, c, next)
			}
			next = c.Bit + c.Width
		}
		if next != 8*l.Size() || len(got) > 64 {
			t.Errorf("%s: %d components end at bit %d of %d", l.Name(), len(got), next, 8*l.Size())
		}
	}
	for name := range lists {
		t.Errorf("the list of %s has no record", name)
	}
}

func TestNoComponents(t *testing.T) {
	for _, a := range []AttrID{AttrClassPortInfo, AttrNotice, AttrInformInfo, AttrServiceAssociationRecord, 0, 0xFFFF} {
		if c := Components(a); c != nil {
			t.Errorf("attribute %#x has %v", uint16(a), c)
		}
	}
}

// prefixes are how the names of constants begin, by record.
var prefixes = map[string]AttrID{
	"Node": AttrNodeRecord, "PortInfo": AttrPortInfoRecord, "SLtoVL": AttrSLtoVLRecord, "SwitchInfo": AttrSwitchInfoRecord,
	"Forwarding": AttrLinearForwardingRecord, "MulticastForwarding": AttrMulticastForwardingRecord, "SMInfo": AttrSMInfoRecord,
	"Link": AttrLinkRecord, "GUIDInfo": AttrGUIDInfoRecord, "Service": AttrServiceRecord, "PKeyTable": AttrPKeyTableRecord,
	"Path": AttrPathRecord, "VLArbitration": AttrVLArbitrationRecord, "MCMember": AttrMCMemberRecord, "Trace": AttrTraceRecord,
	"MultiPath": AttrMultiPathRecord, "InformInfo": AttrInformInfoRecord,
}

// TestComponentConstants: every constant of sa_mask.go is the bit of the component that it names.
func TestComponentConstants(t *testing.T) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "sa_mask.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	conf := types.Config{Importer: importer.Default(), Error: func(error) {}} // names of other files are missing
	pkg, _ := conf.Check("mad", fset, []*ast.File{file}, nil)
	n := 0
	for _, name := range pkg.Scope().Names() {
		c, ok := pkg.Scope().Lookup(name).(*types.Const)
		record, component, named := strings.Cut(name, "Component")
		if !ok || !named {
			continue
		}
		n++
		mask, _ := constant.Uint64Val(c.Val())
		if got := ComponentMask(mask).Names(prefixes[record]); len(got) != 1 || got[0] != component {
			t.Errorf("%s is %v", name, got)
		}
	}
	if n < 110 {
		t.Errorf("only %d constants found", n)
	}
	for i := range GUIDsPerBlock {
		if got, want := GUIDInfoComponentGUID(i).Names(AttrGUIDInfoRecord), fmt.Sprintf("GUID[%d]", i); len(got) != 1 || got[0] != want {
			t.Errorf("entry %d is %v", i, got)
		}
	}
	if MCMemberJoin != 0x10003 || MCMemberCreate != 0x130C7 || PathServiceID != 3 || MultiPathServiceID != 0x210000 {
		t.Errorf("masks %#x, %#x, %#x, %#x", MCMemberJoin, MCMemberCreate, PathServiceID, MultiPathServiceID)
	}
}

func TestMaskNames(t *testing.T) {
	tests := []struct {
		a    AttrID
		mask ComponentMask
		want []string
	}{
		{AttrPathRecord, PathComponentDGID | PathComponentNumbPath, []string{"DGID", "NumbPath"}},
		{AttrPathRecord, 1<<7 | 1<<23 | 1<<24 | 1<<63, []string{"reserved 7", "reserved 23", "bit 24", "bit 63"}},
		{AttrInformInfo, 3, []string{"bit 0", "bit 1"}},
		{AttrPathRecord, 0, nil},
	}
	for _, c := range tests {
		if d := cmp.Diff(c.want, c.mask.Names(c.a)); d != "" {
			t.Errorf("%#x of %#x (-want +got):\n%s", c.mask, uint16(c.a), d)
		}
	}
}
