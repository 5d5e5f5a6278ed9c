package capture

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// run is one call of a tool: the answers it got and its output.
type run struct {
	label   string
	answers []mad.MAD
	output  string
}

// TestRecordedRuns: the output of infiniband-diags when the test data was recorded has the values that our codec decodes
// from the same bytes.
func TestRecordedRuns(t *testing.T) {
	runs := readRuns(t)
	if want := len(diags) + perAltered*len(altered); len(runs) != want {
		t.Fatalf("%d runs in the test data, want %d", len(runs), want)
	}
	for _, r := range runs {
		t.Run(r.label, r.judge)
	}
}

// judge compares field by field the output of the tool with our decoded values.
func (r run) judge(t *testing.T) {
	t.Helper()
	switch {
	case strings.Contains(r.label, " nodeinfo "):
		judgeFields(t, r, mad.AttrNodeInfo, nodeInfoWords)
	case strings.Contains(r.label, " switchinfo "):
		judgeFields(t, r, mad.AttrSwitchInfo, switchInfoWords)
	case strings.Contains(r.label, " portinfo "):
		judgeFields(t, r, mad.AttrPortInfo, portInfoWords)
	case strings.Contains(r.label, " mepi "):
		judgeFields(t, r, mad.AttrMlnxExtendedPortInfo, mepiWords)
	case strings.Contains(r.label, " nodedesc "):
		judgeFields(t, r, mad.AttrNodeDescription, func(d *mad.NodeDescription) map[string]string {
			return map[string]string{"Node Description": d.String()}
		})
	case strings.Contains(r.label, " pkeys "):
		judgeList(t, r, mad.AttrPKeyTable, `0x[0-9a-f]{4}\b`, func(p *mad.PKeyTable) []string { return strs(p.PKey[:]) })
	case strings.Contains(r.label, " guidinfo "):
		judgeList(t, r, mad.AttrGUIDInfo, `0x[0-9a-f]{16}\b`, func(g *mad.GUIDInfo) []string { return strs(g.GUID[:]) })
	case strings.Contains(r.label, " sl2vl "):
		judgeList(t, r, mad.AttrSLtoVLMappingTable, `(?m)^ports:.*: \|(.*)$`, sl2vlWords)
	case strings.Contains(r.label, " vlarb "):
		judgeList(t, r, mad.AttrVLArbitration, `(?m)^(?:VL    |WEIGHT):.*$`, vlarbWords)
	case r.label == "sminfo":
		judgeList(t, r, mad.AttrSMInfo, `(?m)sm guid .*$`, func(s *mad.SMInfo) []string {
			return []string{fmt.Sprintf("sm guid 0x%x, activity count %d priority %d state %d SMINFO_%s",
				uint64(s.GUID), s.ActCount, s.Priority, s.SMState, strings.ToUpper(s.SMState.String()))}
		})
	case strings.HasPrefix(r.label, "ibroute -D"):
		judgeList(t, r, mad.AttrLinearForwardingTable, `(?m)^0x[0-9a-f]{4} \d{3}`, routeWords)
	case strings.HasPrefix(r.label, "ibroute -M"), r.label == "perfquery":
		if len(r.answers) == 0 {
			t.Error("no answers")
		}
	default:
		t.Errorf("nobody judges %q", r.label)
	}
}

// decodeAll returns the answers about one attribute.
func decodeAll[T any](t *testing.T, r run, a mad.AttrID) []T {
	t.Helper()
	var all []T
	for i := range r.answers {
		m := &r.answers[i]
		if m.Attr() != a || !m.IsSMP() {
			continue
		}
		var v T
		if err := mad.Decode(m.Data(), &v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if len(all) == 0 {
		t.Fatalf("%s: no answer about %v", r.label, a)
	}
	return all
}

var fieldLine = regexp.MustCompile(`(?m)^([A-Z][A-Za-z0-9 ]*):\.*(.*)$`)

func judgeFields[T any](t *testing.T, r run, a mad.AttrID, words func(*T) map[string]string) {
	t.Helper()
	all := decodeAll[T](t, r, a)
	got := map[string]string{}
	for _, m := range fieldLine.FindAllStringSubmatch(r.output, -1) {
		if m[2] != "<not displayed>" {
			got[m[1]] = strings.TrimSuffix(m[2], " (IBA extension)")
		}
	}
	if d := cmp.Diff(got, words(&all[len(all)-1])); d != "" {
		t.Errorf("%s (-printed by the tool +decoded by us):\n%s", r.label, d)
	}
}

// judgeList compares everything in the output that matches the pattern, or its
// only group, with the words for all answers together.
func judgeList[T any](t *testing.T, r run, a mad.AttrID, pattern string, words func(*T) []string) {
	t.Helper()
	var ours []string
	for _, v := range decodeAll[T](t, r, a) {
		ours = append(ours, words(&v)...)
	}
	var printed []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(r.output, -1) {
		printed = append(printed, m[len(m)-1])
	}
	if d := cmp.Diff(printed, ours); d != "" {
		t.Errorf("%s (-printed by the tool +decoded by us):\n%s", r.label, d)
	}
}

func strs[T fmt.Stringer](list []T) (out []string) {
	for _, v := range list {
		out = append(out, v.String())
	}
	return out
}

// readRuns reads what writeRuns wrote.
func readRuns(t *testing.T) []run {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testdata, "diags.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var runs []run
	for _, part := range strings.Split(string(text), "\n= ")[1:] {
		label, rest, _ := strings.Cut(part, "\n")
		answers, output, ok := strings.Cut(rest, "output\n")
		if !ok {
			t.Fatalf("test data of %q has no output", label)
		}
		r := run{label: label, output: output}
		for _, h := range strings.Split(answers, "answer\n")[1:] {
			b, err := mad.ParseHex([]byte(h))
			if err != nil || len(b) != mad.Size {
				t.Fatalf("answer of %q: %d bytes, %v", label, len(b), err)
			}
			r.answers = append(r.answers, mad.MAD(bytes.Clone(b)))
		}
		runs = append(runs, r)
	}
	return runs
}

func yes(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func vlWords(c ib.VLCap) string {
	return map[ib.VLCap]string{1: "VL0", 2: "VL0-1", 3: "VL0-3", 4: "VL0-7", 5: "VL0-14"}[c]
}

// orWords names the bits of a mask as infiniband-diags do.
func orWords(mask uint8, names ...string) string {
	var set []string
	for i, n := range names {
		if mask&(1<<i) != 0 {
			set = append(set, n)
		}
	}
	return strings.Join(set, " or ")
}
