package capture

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

var update = flag.Bool("update", false, "write what was captured to ../../testdata")

const netlist = `
Switch 4 "spine"
[1] "leaf"[4]

Switch 6 "leaf"
[1] "sm"[1]
[2] "h1"[1]
[3] "h2"[1]
[4] "spine"[1]

Hca 1 "sm"
[1] "leaf"[1]

Hca 2 "h1"
[1] "leaf"[2]

Hca 1 "h2"
[1] "leaf"[3]
`

const partitions = `Default=0x7fff,ipoib:ALL=limited,SELF=full;
tenant=0x8123:ALL=full;
`

// opensm is the label of frames that no diagnostic tool requested.
const opensm = "opensm"

// diags are the tools that ask, by their arguments. All sit at node "sm".
var diags = [][]string{
	{"smpquery", "-D", "nodeinfo", "0"},
	{"smpquery", "-D", "nodeinfo", "0,1"},
	{"smpquery", "-D", "nodeinfo", "0,1,2"},
	{"smpquery", "-D", "nodedesc", "0,1,4"},
	{"smpquery", "-D", "switchinfo", "0,1"},
	{"smpquery", "-D", "portinfo", "0"},
	{"smpquery", "-D", "portinfo", "0,1", "0"},
	{"smpquery", "-D", "portinfo", "0,1", "4"},
	{"smpquery", "-D", "portinfo", "0,1", "5"},
	{"smpquery", "-D", "pkeys", "0,1,2"},
	{"smpquery", "-D", "pkeys", "0,1", "2"},
	{"smpquery", "-D", "sl2vl", "0,1,2"},
	{"smpquery", "-D", "sl2vl", "0,1", "2"},
	{"smpquery", "-D", "vlarb", "0,1", "2"},
	{"smpquery", "-D", "guidinfo", "0,1,2"},
	{"smpquery", "-D", "mepi", "0,1", "2"},
	{"smpquery", "nodeinfo", "1"},
	{"smpquery", "portinfo", "1"},
	{"sminfo"},
	{"perfquery"},
	{"ibroute", "-D", "0,1"},
	{"ibroute", "-M", "-D", "0,1"},
}

// TestCapture: every frame that OpenSM and infiniband-diags exchange with ibsim is read by our codec and written again to
// the same bytes. With -update the frames become the test data of package mad.
func TestCapture(t *testing.T) {
	ibsimtest.Need(t, "opensm", "smpquery", "sminfo", "perfquery", "ibroute")
	lab := ibsimtest.Start(t, []byte(netlist))
	base := "tap-" + lab.Socket()
	tap, err := Listen(base, lab.Socket())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tap.Close(); err != nil {
			t.Error(err)
		}
	})
	client := ibsimlab.Client{Socket: base, Dir: t.TempDir()}
	tap.SetLabel(opensm)
	log := startOpenSM(t, client, "")
	waitLine(t, log, "SUBNET UP")
	var runs []run
	for _, d := range diags {
		runs = append(runs, ask(t, tap, client, strings.Join(d, " "), d))
	}
	for _, a := range altered {
		for i := range perAltered {
			tap.SetAlter(a.alter(rand.New(rand.NewPCG(uint64(i), 2))))
			runs = append(runs, ask(t, tap, client, fmt.Sprintf("altered %d: %s", i, strings.Join(a.diag, " ")), a.diag))
		}
	}
	tap.SetAlter(nil)
	tap.SetLabel(opensm)
	ibsimtest.Console(t, lab, `unlink "h2"`)
	waitLine(t, log, "SUBNET UP")
	frames := tap.Frames()
	checkFrames(t, frames)
	for _, r := range runs {
		r.judge(t)
	}
	if *update {
		writeFrames(t, frames)
		writeRuns(t, runs)
	}
}

// ask runs one tool and keeps its answers and its output.
func ask(t *testing.T, tap *Tap, client ibsimlab.Client, label string, diag []string) run {
	t.Helper()
	tap.SetLabel(label)
	out, err := client.Diag(t.Context(), "sm", diag[0], diag[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	r := run{label: label, output: string(out)}
	for _, f := range tap.Frames() {
		if f.Label == label && !f.ToSim && f.mad().Method() == mad.MethodGetResp {
			r.answers = append(r.answers, *f.mad())
		}
	}
	return r
}

// startOpenSM runs OpenSM until the end of the test and returns its log.
func startOpenSM(t *testing.T, client ibsimlab.Client, preload satest.Preload) *bufio.Scanner {
	t.Helper()
	config := filepath.Join(client.Dir, "partitions.conf")
	if err := os.WriteFile(config, []byte(partitions), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, err := client.Command(t.Context(), "sm", "opensm", "-f", "stdout", "-e", "-d2", "-s", "0", "-Q", "-P", config)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, "SIM_SET_ISSM=1")
	preload.Apply(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	return bufio.NewScanner(out)
}

func waitLine(t *testing.T, log *bufio.Scanner, want string) {
	t.Helper()
	for log.Scan() {
		if strings.Contains(log.Text(), want) {
			return
		}
	}
	t.Fatalf("OpenSM ended before it said %q: %v", want, log.Err())
}

func (f *Frame) mad() *mad.MAD { return (*mad.MAD)(f.Packet[FrameHeader:]) }

func checkFrames(t *testing.T, frames []Frame) {
	t.Helper()
	seen := map[mad.AttrID]int{}
	for i := range frames {
		m := frames[i].mad()
		l, ok := mad.LookupLayout(m.Class(), m.Attr())
		if !m.IsSMP() || !ok {
			continue
		}
		seen[m.Attr()]++
		if m.Method() == mad.MethodGet {
			continue // infiniband-diags send what lay in their memory
		}
		v, err := l.Decode(m.Data())
		if err != nil {
			t.Fatal(err)
		}
		back := make([]byte, l.Size())
		if err := l.Encode(back, v); err != nil {
			t.Fatal(err)
		}
		if want := m.Data()[:l.Size()]; !bytes.Equal(back, want) {
			t.Errorf("frame %d, %v %v: re-encoded to\n%x, want\n%x", i, m.Method(), m.Attr(), back, want)
		}
	}
	for _, a := range []mad.AttrID{
		mad.AttrNotice, mad.AttrNodeDescription, mad.AttrNodeInfo, mad.AttrSwitchInfo, mad.AttrGUIDInfo, mad.AttrPortInfo,
		mad.AttrPKeyTable, mad.AttrSLtoVLMappingTable, mad.AttrVLArbitration, mad.AttrLinearForwardingTable,
		mad.AttrMulticastForwardingTable, mad.AttrSMInfo, mad.AttrMlnxExtendedPortInfo,
	} {
		if seen[a] == 0 {
			t.Errorf("no %v among %d frames", a, len(frames))
		}
	}
}

const testdata = "../../testdata"

// perKind is how many different frames of a kind are kept: one Get is as good
// as another.
func perKind(m *mad.MAD) int {
	if m.Method() == mad.MethodGet {
		return 1
	}
	return 4
}

// writeFrames keeps some frames of each kind: the same tool, class, method and
// attribute.
func writeFrames(t *testing.T, frames []Frame) {
	kept := map[string][]string{}
	for i := range frames {
		f := &frames[i]
		m := f.mad()
		if strings.HasPrefix(f.Label, "altered") {
			continue
		}
		kind := fmt.Sprintf("%s: %v %v %s", origin(f), m.Class(), m.Method(), m.Header().AttrName())
		text := hexLines(m[:])
		if len(kept[kind]) < perKind(m) && !slices.Contains(kept[kind], text) {
			kept[kind] = append(kept[kind], text)
		}
	}
	var b strings.Builder
	b.WriteString("# MADs recorded by fabricsm/mad/internal/capture: go test ./internal/capture -update\n")
	b.WriteString("# opensm 3.3.23, infiniband-diags 44.0, ibsim 0.10. Each begins with who sent it.\n")
	kinds := make([]string, 0, len(kept))
	for k := range kept {
		kinds = append(kinds, k)
	}
	slices.Sort(kinds)
	for _, k := range kinds {
		for _, text := range kept[k] {
			fmt.Fprintf(&b, "\n= %s\n%s", k, text)
		}
	}
	write(t, "frames.txt", b.String())
}

func origin(f *Frame) string {
	tool, _, _ := strings.Cut(f.Label, " ")
	if f.ToSim {
		return tool + " to ibsim"
	}
	return "ibsim to " + tool
}

func hexLines(b []byte) string {
	var s strings.Builder
	for row := range slices.Chunk(b, 32) {
		s.WriteString(hex.EncodeToString(row) + "\n")
	}
	return s.String()
}

// writeRuns keeps the output of each tool and the answers it printed it from.
func writeRuns(t *testing.T, runs []run) {
	var b strings.Builder
	b.WriteString("# What infiniband-diags 44.0 printed, and the answers they printed it from: those of\n")
	b.WriteString("# ibsim 0.10, in runs called altered with random values of ours put in.\n")
	b.WriteString("# Written by fabricsm/mad/internal/capture: go test ./internal/capture -update\n")
	for _, r := range runs {
		fmt.Fprintf(&b, "\n= %s\n", r.label)
		for i := range r.answers {
			b.WriteString("answer\n" + hexLines(r.answers[i][:]))
		}
		b.WriteString("output\n" + r.output)
	}
	write(t, "diags.txt", b.String())
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(testdata, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(testdata, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
