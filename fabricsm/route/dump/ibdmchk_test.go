package dump_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/dor"
	"portcullis/fabricsm/route/dump"
	"portcullis/fabricsm/route/ftree"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
)

// lab is every fabric that ibdmchk judges.
func lab() map[string]*topotest.Kit {
	return map[string]*topotest.Kit{
		"one switch":                 topotest.Single(20, 36),
		"two levels, 36 hosts":       topotest.FatTree2(36, 36),
		"two levels, 324 hosts":      topotest.FatTree2(324, 36),
		"three levels, 54 hosts":     topotest.FatTree3(54, 6),
		"three levels, 432 hosts":    topotest.FatTree3(432, 12),
		"chain of 8":                 topotest.Chain(8, 2),
		"ring of 5":                  topotest.Torus(5, 1, 1),
		"torus 4x4":                  topotest.Torus(4, 4, 2),
		"torus 6x6":                  topotest.Torus(6, 6, 1),
		"a host on two leaves":       topotest.DualPort(),
		"three levels, cables lost":  damaged(topotest.FatTree3(54, 6)),
		"two levels, two LIDs a CA":  withLMC(topotest.FatTree2(36, 36), 1),
		"three levels, four LIDs CA": withLMC(topotest.FatTree3(54, 6), 2),
	}
}

func damaged(k *topotest.Kit) *topotest.Kit {
	f := k.Fabric()
	k.Cut(f.NodeByGUID(topotest.SwitchGUID(1, 1)), 4)
	k.Cut(f.NodeByGUID(topotest.SwitchGUID(2, 5)), 6)
	return k
}

// withLMC gives every CA port 1<<lmc LIDs. ibdmchk judges the routes to the
// first of them: told of an LMC it stops at its own table of hops.
func withLMC(k *topotest.Kit, lmc ib.LMC) *topotest.Kit {
	for _, h := range k.Hosts {
		k.SetLMC(h, 1, lmc)
	}
	return k
}

// TestIBDMChk has Debian's ibdmchk judge what every engine makes of every
// fabric of the lab: it must find all paths, and a credit loop exactly where
// our own checker finds one.
func TestIBDMChk(t *testing.T) {
	program := ibdmchk(t)
	engines := map[string]route.Engine{
		"minhop": minhop.Engine{}, "dor": dor.Engine{Lanes: 8}, "ftree": ftree.Engine{}, "updn": updn.Engine{},
		"updn with roots": updn.Engine{Roots: []ib.GUID{topotest.SwitchGUID(1, 1)}},
	}
	for name, kit := range lab() {
		f := kit.Fabric()
		for label, e := range engines {
			t.Run(name+"/"+label, func(t *testing.T) {
				tables, err := e.Route(f, nil)
				if noTree := !strings.Contains(name, "levels") && name != "one switch"; label == "ftree" && noTree {
					if err == nil {
						t.Fatal("ftree routes what is no fat tree")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				r := route.Check(f, tables)
				if label != "minhop" && r.Err() != nil {
					t.Errorf("our checker: %v", r.Err())
				}
				judge(t, program, f, tables, r)
			})
		}
	}
}

// TestIBDMChkSeesLanes: with all its routes on one lane, a torus in dimension
// order has credit loops, for both judges. So it is the lanes that avoid them.
func TestIBDMChkSeesLanes(t *testing.T) {
	program := ibdmchk(t)
	f := topotest.Torus(4, 4, 2).Fabric()
	tables, err := dor.Engine{Lanes: 8}.Route(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, err := route.NewGraph(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	tables.SetLayers(g, 1, func(_, _ int32) uint8 { return 0 })
	r := route.Check(f, tables)
	if r.CreditLoop == nil {
		t.Fatal("our checker finds no credit loop")
	}
	judge(t, program, f, tables, r)
}

// ibdmchk finds the program, or skips the test.
func ibdmchk(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("ibdmchk")
	switch {
	case err == nil:
	case os.Getenv("PORTCULLIS_REAL_PARTS") == "required":
		t.Fatal("ibdmchk is not installed and PORTCULLIS_REAL_PARTS says required: install the package ibutils")
	default:
		t.Skip("ibdmchk is not installed: install the package ibutils to have it judge our tables")
	}
	return program
}

// judge compares the verdict of ibdmchk with ours. The program prints its
// verdict and then crashes, so its exit status says nothing.
func judge(t *testing.T, program string, f *topo.Fabric, tables *route.Tables, r route.Report) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), program,
		"-s", write(t, dir, "opensm-subnet.lst", func(w io.Writer) error { return dump.Subnet(w, f) }),
		"-f", write(t, dir, "opensm.fdbs", func(w io.Writer) error { return dump.FDBs(w, f, tables) }),
		"-m", write(t, dir, "opensm.mcfdbs", func(io.Writer) error { return nil }))
	if tables.Layers() > 1 {
		cmd.Args = append(cmd.Args, "-c", write(t, dir, "paths-sl", func(w io.Writer) error { return dump.PathSLs(w, f, tables) }),
			"-d", write(t, dir, "sl2vl", func(w io.Writer) error { return dump.SL2VL(w, f, tables) }))
	}
	cmd.Dir = dir
	raw, _ := cmd.CombinedOutput()
	out := string(raw)
	for line := range strings.Lines(out) {
		if complaint.MatchString(line) && !harmless.MatchString(line) {
			t.Errorf("ibdmchk: %s", strings.TrimSpace(line))
		}
	}
	none, some := strings.Contains(out, "no credit loops found"), strings.Contains(out, "credit loops in routing")
	switch {
	case none == some:
		t.Errorf("ibdmchk gives no verdict:\n%s", out)
	case some && r.CreditLoop == nil:
		t.Errorf("ibdmchk finds a credit loop and we do not:\n%s", out)
	case none && r.CreditLoop != nil && !needsSwitch(f, r):
		t.Errorf("ibdmchk finds no credit loop, we do: %v", r.Err())
	}
}

// harmless complaints are those about credit loops, which are judged by
// themselves.
var complaint, harmless = regexp.MustCompile(`^-[EW]-`), regexp.MustCompile(`(?i)credit loop`)

// needsSwitch reports whether a credit loop goes over a route to the LID of a
// switch. Those carry management packets and data to nobody; we count them, as
// a host can send to what it likes, and ibdmchk does not.
func needsSwitch(f *topo.Fabric, r route.Report) bool {
	return slices.ContainsFunc(r.CreditLoop, func(c route.Channel) bool {
		return slices.ContainsFunc(f.Switches(), func(id topo.NodeID) bool { return f.Port(f.Node(id).FirstPort).LID == c.LID })
	})
}

func write(t *testing.T, dir, name string, dump func(io.Writer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := dump(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
