package inventory

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"portcullis/fabricsm/ib"
)

// TestImport runs the transcripts in testdata: each import prints its report
// or its problems, "stored" prints the inventory afterwards.
func TestImport(t *testing.T) {
	datadriven.Walk(t, "testdata/import", func(t *testing.T, path string) {
		stored := &Contents{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "import", "dry-run":
				out, next := importText(stored, d.Input)
				if d.Cmd == "import" {
					stored = next
				}
				return out
			case "stored":
				return printContents(stored)
			default:
				d.Fatalf(t, "unknown command %q", d.Cmd)
				return ""
			}
		})
	})
}

// importText imports the files of a transcript: each begins with "-- name".
func importText(stored *Contents, input string) (string, *Contents) {
	var files []File
	for _, part := range strings.Split("\n"+input, "\n-- ")[1:] {
		name, data, _ := strings.Cut(part, "\n")
		files = append(files, File{Name: name, Data: []byte(data)})
	}
	d, err := Parse(files)
	if err != nil {
		return err.Error(), stored
	}
	p, err := NewPlan(stored, d)
	if err != nil {
		return err.Error(), stored
	}
	return printPlan(p), p.Contents()
}

func printPlan(p *Plan) string {
	var b strings.Builder
	for _, h := range p.Added {
		fmt.Fprintf(&b, "add %s\n", h.ID)
	}
	for _, c := range p.Changed {
		fmt.Fprintf(&b, "change %s (identity: %v)\n", c.After.ID, c.Identity)
		for _, f := range c.Fields {
			fmt.Fprintf(&b, "  %s\n", f)
		}
	}
	for _, c := range p.Things() {
		fmt.Fprintf(&b, "%s %s %s\n", c.What, c.Kind, c.ID)
		for _, f := range c.Fields {
			fmt.Fprintf(&b, "  %s\n", f)
		}
	}
	fmt.Fprintf(&b, "unchanged %d, not in file %v, total %d\n", p.Unchanged, p.NotInFile, p.Total)
	return b.String()
}

// printContents prints hosts by port, and the rest as it is exported.
func printContents(c *Contents) string {
	rest := *c
	rest.Hosts = nil
	out := printHosts(c.Hosts)
	if text := string(Write(&rest)); text != "hosts: []\n" {
		out += "\n" + text
	}
	return out
}

func printHosts(hosts []Host) string {
	var lines []string
	for _, h := range hosts {
		for _, a := range h.HCAs {
			for _, p := range a.Ports {
				lines = append(lines, fmt.Sprintf("%s ek=%.8s rack=%s hca=%v port=%d guid=%v cable=%v", h.ID, h.EK, h.Rack, a.NodeGUID, p.Num, p.GUID, p.Cable)+aliasText(p.Aliases))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func aliasText(guids []ib.GUID) string {
	if len(guids) == 0 {
		return ""
	}
	return fmt.Sprintf(" aliases=%v", guids)
}

func TestLimits(t *testing.T) {
	big := func(n int) string {
		var b strings.Builder
		b.WriteString("hosts:\n")
		for i := range n {
			fmt.Fprintf(&b, "- {id: h%d, hcas: [{node_guid: 0x%x, ports: [{port: 1, guid: 0x%x}]}]}\n", i, 2*i+1, 2*i+2)
		}
		return b.String()
	}
	for _, c := range []struct {
		name  string
		files []File
		want  string
	}{
		{"no file", nil, "no file given"},
		{"too many files", make([]File, MaxFiles+1), "at most 64"},
		{"too large", []File{{Name: "a", Data: make([]byte, MaxFileSize+1)}}, "at most 33554432"},
		{"too many hosts", []File{{Name: "a", Data: []byte(big(maxHosts + 1))}}, "at most 20000"},
		{"alias bomb", []File{{Name: "a", Data: []byte("hosts: &a [*a, *a]\n")}}, "a:1"},
		{"deep nesting", []File{{Name: "a", Data: []byte("hosts: " + strings.Repeat("[", 50_000))}}, "a"},
		{"hundreds of problems", []File{{Name: "a", Data: []byte("hosts: [" + strings.Repeat("x,", 500) + "]")}}, "and 400 more problems"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse(c.files)
			var ps Problems
			if !errors.As(err, &ps) || !strings.Contains(strings.Join(ps.Lines(), "\n"), c.want) {
				t.Errorf("got %.300v, want a problem with %q", err, c.want)
			}
		})
	}
}

func TestTenThousandHosts(t *testing.T) {
	var b strings.Builder
	b.WriteString("hosts:\n")
	for i := range 10_000 {
		fmt.Fprintf(&b, "- id: h%d\n  hcas:\n", i)
		for j := range 2 {
			g := 0x10_0000 + i*16 + j*4
			fmt.Fprintf(&b, "  - node_guid: 0x%x\n    ports:\n    - {port: 1, guid: 0x%x, cable: 0x%x/%d}\n", g, g+1, 0x1+i/100, 1+(i%100)*2+j)
		}
	}
	d, err := Parse([]File{{Name: "hosts.yaml", Data: []byte(b.String())}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(&Contents{}, d)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Added) != 10_000 {
		t.Errorf("got %d hosts added, want 10000", len(p.Added))
	}
}

// TestWithout leaves hosts of the files as they are, and finds what the others would
// have that these have still.
func TestWithout(t *testing.T) {
	const stored = `hosts:
- {id: a, ek_sha256: %[1]s, hcas: [{node_guid: 0x10, ports: [{port: 1, guid: 0x11, cable: 0x5/1}]}]}
- {id: b, hcas: [{node_guid: 0x20, ports: [{port: 1, guid: 0x21, cable: 0x5/2}]}]}
`
	one, two := strings.Repeat("1", 64), strings.Repeat("2", 64)
	before := planOf(t, nil, fmt.Sprintf(stored, one)).Added
	for _, c := range []struct {
		name, files string
		ids         []string
		want        string // of the plan, or its problem
	}{
		{"nothing else", fmt.Sprintf(stored, two), []string{"a"}, "unchanged 1, not in file [], total 2\n"},
		{"one that is new", fmt.Sprintf(stored, one) + "- {id: c, hcas: [{node_guid: 0x30, ports: [{port: 1, guid: 0x31}]}]}\n", []string{"c"}, "unchanged 2, not in file [], total 2\n"},
		{"another is changed", strings.ReplaceAll(fmt.Sprintf(stored, two), "0x5/2", "0x5/3"), []string{"a"}, "change b (identity: true)"},
		{"its GUID is given away", strings.NewReplacer("0x10,", "0x18,", "0x11,", "0x19,", "0x21,", "0x11,").Replace(fmt.Sprintf(stored, two)), []string{"a"}, "is claimed by host b"},
		{"its EK is given away", strings.Replace(fmt.Sprintf(stored, two), "{id: b,", "{id: b, ek_sha256: "+one+",", 1), []string{"a"}, "EK " + one + " is claimed by host b"},
		{"its switch port is given away", strings.NewReplacer("0x5/1", "0x5/9", "0x5/2", "0x5/1").Replace(fmt.Sprintf(stored, two)), []string{"a"}, "switch port"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := planOf(t, before, c.files).Without(c.ids...)
			got := fmt.Sprint(err)
			if err == nil {
				got = printPlan(p)
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
			for _, h := range before {
				if err == nil && slices.Contains(c.ids, h.ID) && !slices.ContainsFunc(p.Hosts(), func(n Host) bool { return cmp.Equal(h, n) }) {
					t.Errorf("host %s is not left as it was: %+v", h.ID, p.Hosts())
				}
			}
		})
	}
}

func planOf(t *testing.T, stored []Host, text string) *Plan {
	t.Helper()
	d, err := Parse([]File{{Name: "hosts.yaml", Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(&Contents{Hosts: stored}, d)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReplace(t *testing.T) {
	hosts := planOf(t, nil, `hosts:
- {id: a, hcas: [{node_guid: 0x10, ports: [{port: 1, guid: 0x11, cable: 0x5/1}]}]}
- {id: b, hcas: [{node_guid: 0x20, ports: [{port: 1, guid: 0x21, cable: 0x5/2}]}]}
`).Added
	next := hosts[0].clone()
	next.EK = strings.Repeat("3", 64)
	p, err := Replace(&Contents{Hosts: hosts}, &next, "repair")
	if err != nil || len(p.Changed) != 1 || p.Changed[0].After.EK != next.EK || p.Total != 2 {
		t.Errorf("got %+v, %v", p, err)
	}
	next.HCAs[0].Ports[0].GUID = 0x21
	if _, err := Replace(&Contents{Hosts: hosts}, &next, "repair RMA-7"); err == nil || !strings.Contains(err.Error(), "repair RMA-7: ") {
		t.Errorf("a port of another host: %v, want a problem that names the repair", err)
	}
}

func TestOnePortCard(t *testing.T) {
	// Many one-port cards use their node GUID as the port's GUID too.
	d, err := Parse([]File{{Name: "h", Data: []byte("hosts: [{id: a, hcas: [{node_guid: 0x10, ports: [{port: 1, guid: 0x10}]}]}]")}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPlan(&Contents{}, d)
	if err != nil {
		t.Fatal(err)
	}
	want := []Host{{ID: "a", HCAs: []HCA{{NodeGUID: 0x10, Ports: []Port{{Num: 1, GUID: 0x10}}}}}}
	if d := cmp.Diff(want, p.Added); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// FuzzParse checks that no input crashes the parser, and that an inventory
// which is accepted is unambiguous and imports again without a change.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "hosts: []", "hosts: &a [*a]", "{", "a: b", "---\n---\n",
		"hosts: [{id: a, ek_sha256: " + strings.Repeat("ab", 32) + ", rack: r, hcas: [{node_guid: 0x10, system_image_guid: 0x9, ports: [{port: 1, guid: 0x11, cable: 0x5/1}]}]}]",
		"hosts: [{id: a, hcas: [{node_guid: 0x10, ports: [{port: 1, guid: 0x11}]}]}]\ncables: [{guid: 0x11, switch: 0x5, port: 7}]",
		"hosts: [{id: a, hcas: [{node_guid: 0x10, ports: [{port: 1, guid: 0x11}]}]}]\ncables: [{host: a, hca: 0x10, hca_port: 1, switch: 0x5, port: 7}]",
		"sites: [{id: s}]\nracks: [{id: r, site: s, units: 9}]\nswitches: [{id: l, guid: 0x5, model: MQM9700, rack: r, unit: 9}, {id: k, guid: 0x6}]\n" +
			"hosts: [{id: a, rack: r, unit: 1, hcas: [{node_guid: 0x10, rail: 1, ports: [{port: 1, guid: 0x11, cable: l/7, label: \"7\"}]}]}]\n" +
			"adapters: [{node_guid: 0x20, location: shelf, ports: [{port: 1, guid: 0x21}]}]\ncables: [{a: l/1, b: k/2, label: x}]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		files := []File{{Name: "fuzz.yaml", Data: data}}
		d, err := Parse(files)
		if err != nil {
			return
		}
		p, err := NewPlan(&Contents{}, d)
		if err != nil {
			return
		}
		checkUnique(t, p.Added)
		again, err := NewPlan(p.Contents(), d)
		if err != nil {
			t.Fatalf("second import: %v", err)
		}
		if !again.Empty() {
			t.Errorf("second import changes something: %s", printPlan(again))
		}
		checkWritten(t, p.Contents())
	})
}

// checkWritten checks that an export of c is c, and imports without a change.
func checkWritten(t *testing.T, c *Contents) {
	t.Helper()
	text := Write(c)
	d, err := Parse([]File{{Name: "export.yaml", Data: text}})
	if err != nil {
		t.Fatalf("an export cannot be read: %v\n%s", err, text)
	}
	for _, stored := range []*Contents{c, {}} {
		p, err := NewPlan(stored, d)
		if err != nil {
			t.Fatalf("an export cannot be imported: %v\n%s", err, text)
		}
		if stored == c && !p.Empty() {
			t.Errorf("an export changes something: %s", printPlan(p))
		}
		if diff := cmp.Diff(c, p.Contents(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("an export is another inventory (-want +got):\n%s", diff)
		}
	}
}

func checkUnique(t *testing.T, hosts []Host) {
	guids, places, eks := map[ib.GUID]string{}, map[ib.Place]bool{}, map[string]bool{}
	for _, h := range hosts {
		if h.EK != "" && eks[h.EK] {
			t.Errorf("EK %s twice", h.EK)
		}
		eks[h.EK] = true
		for _, a := range h.HCAs {
			card := fmt.Sprint(h.ID, a.NodeGUID)
			for _, p := range a.Ports {
				if owner, taken := guids[p.GUID]; taken && owner != card {
					t.Errorf("GUID %v twice", p.GUID)
				}
				guids[p.GUID] = card
				if !p.Cable.IsZero() && places[p.Cable] {
					t.Errorf("switch port %v twice", p.Cable)
				}
				places[p.Cable] = true
			}
		}
	}
}
