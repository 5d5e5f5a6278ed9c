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
	"portcullis/fabricsm/route/dfp"
	"portcullis/fabricsm/route/dfsssp"
	"portcullis/fabricsm/route/dnup"
	"portcullis/fabricsm/route/dor"
	"portcullis/fabricsm/route/dump"
	"portcullis/fabricsm/route/ftree"
	"portcullis/fabricsm/route/minhop"
	"portcullis/fabricsm/route/torus"
	"portcullis/fabricsm/route/updn"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topo/topotest"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
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
		"torus 5x4x3":                topotest.Grid([3]int{5, 4, 3}, [3]bool{true, true, true}, 1),
		"torus 5x5, switch lost":     without(topotest.Grid([3]int{5, 5, 1}, [3]bool{true, true, true}, 1), 7),
		"mesh 4x3x2":                 topotest.Grid([3]int{4, 3, 2}, [3]bool{}, 1),
		"hypercube of 16":            topotest.Hypercube(4, 1),
		"dragonfly+, cables lost":    damaged(topotest.DragonflyPlus(4, 3, 3, 2, 2)),
		"dragonfly+ of 4 groups":     topotest.DragonflyPlus(4, 3, 3, 2, 2),
		"a host on two leaves":       topotest.DualPort(),
		"three levels, cables lost":  damaged(topotest.FatTree3(54, 6)),
		"two levels, two LIDs a CA":  withLMC(topotest.FatTree2(36, 36), 1),
		"three levels, four LIDs CA": withLMC(topotest.FatTree3(54, 6), 2),
	}
}

func without(k *topotest.Kit, id topo.NodeID) *topotest.Kit {
	k.Fabric()
	k.Remove(id)
	return k
}

func damaged(k *topotest.Kit) *topotest.Kit {
	f := k.Fabric()
	k.Cut(f.NodeByGUID(topotest.SwitchGUID(1, 1)), 4)
	k.Cut(f.NodeByGUID(topotest.SwitchGUID(2, 5)), int(k.Node(f.NodeByGUID(topotest.SwitchGUID(2, 5))).NumPorts))
	return k
}

// withLMC returns the kit with 1<<lmc LIDs at every CA port. ibdmchk judges the routes to the first of them: with an LMC it
// stops at its own table of hops.
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
		"dfsssp": dfsssp.Engine{Lanes: 8}, "dfp": dfp.Engine{Lanes: 8}, "dnup": dnup.Engine{}, "torus": torus.Engine{Lanes: 4},
		"updn with roots": updn.Engine{Roots: []ib.GUID{topotest.SwitchGUID(1, 1)}},
	}
	for name, kit := range lab() {
		f := kit.Fabric()
		for label, e := range engines {
			t.Run(name+"/"+label, func(t *testing.T) {
				tables, err := e.Route(f, nil)
				if refuses(name, label) {
					if err == nil {
						t.Fatal("it routes what it is not made for")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				r := route.Check(f, tables)
				if label != "minhop" && label != "dnup" && r.Err() != nil {
					t.Errorf("our checker: %v", r.Err())
				}
				judge(t, program, f, tables, r)
			})
		}
	}
}

// refuses reports whether an engine is not made for a fabric.
func refuses(fabric, engine string) bool {
	switch engine {
	case "ftree":
		return !strings.Contains(fabric, "levels") && fabric != "one switch"
	case "dfp":
		return !strings.HasPrefix(fabric, "dragonfly")
	case "torus": // two leaves below one spine are a row of three
		return strings.Contains(fabric, "levels") && fabric != "two levels, 36 hosts" && fabric != "two levels, two LIDs a CA" || strings.HasPrefix(fabric, "dragonfly")
	default:
		return false
	}
}

// TestIBDMChkSeesLanes: with all its routes on one lane, a torus has credit
// loops, for both judges. So it is the lanes that avoid them.
func TestIBDMChkSeesLanes(t *testing.T) {
	program := ibdmchk(t)
	f := topotest.Torus(5, 5, 2).Fabric()
	for _, e := range []route.Engine{dor.Engine{Lanes: 8}, dfsssp.Engine{Lanes: 8}, torus.Engine{Lanes: 2}} {
		t.Run(e.Name(), func(t *testing.T) {
			tables, err := e.Route(f, nil)
			if err != nil {
				t.Fatal(err)
			}
			g, err := route.NewGraph(f, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tables.LanesByPort() {
				tables.SetLanes(g, route.Lanes{
					Count: 2, Levels: 8, Classes: 2, Class: func(int32) uint8 { return 1 },
					VL: func(uint8, uint8, ib.SL) ib.VL { return 0 }, SL: func(_, _ int32) uint8 { return 0 },
				})
			} else {
				tables.SetLayers(g, 1, func(_, _ int32) uint8 { return 0 })
			}
			r := route.Check(f, tables)
			if r.CreditLoop == nil {
				t.Fatal("our checker finds no credit loop")
			}
			judge(t, program, f, tables, r)
		})
	}
}

// ibdmchk finds the program, or skips the test.
func ibdmchk(t *testing.T) string {
	t.Helper()
	ibsimtest.Need(t, "ibdmchk")
	program, err := exec.LookPath("ibdmchk")
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// verdict returns ibdmchk's verdict on tables. The program prints it and then crashes, so its exit status has no meaning.
func verdict(t *testing.T, program string, f *topo.Fabric, tables *route.Tables) string {
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
	return string(raw)
}

// TestIBDMChkSeesFaults: ibdmchk does not accept tables that our checker rejects.
func TestIBDMChkSeesFaults(t *testing.T) {
	program := ibdmchk(t)
	for _, tt := range []struct {
		name string
		port ib.PortNum
	}{{"dropped", ib.NoPort}, {"sent to another host", 1}, {"sent to a port without cable", 36}} {
		t.Run(tt.name, func(t *testing.T) {
			k := topotest.FatTree2(30, 36)
			f := k.Fabric()
			tables, err := minhop.Engine{}.Route(f, nil)
			if err != nil {
				t.Fatal(err)
			}
			k.Cut(f.Switches()[0], 36)
			f = k.Fabric()
			lid := f.Port(f.PortOf(k.Hosts[20], 1)).LID
			tables.Writable(nil, f.Switches()[0])[lid] = tt.port
			if route.Check(f, tables).Err() == nil {
				t.Error("our checker passes it")
			}
			out := verdict(t, program, f, tables)
			if !slices.ContainsFunc(strings.Split(out, "\n"), complaint.MatchString) {
				t.Errorf("ibdmchk passes it:\n%s", out)
			}
		})
	}
}

// judge compares the verdict of ibdmchk with ours.
func judge(t *testing.T, program string, f *topo.Fabric, tables *route.Tables, r route.Report) {
	t.Helper()
	out := verdict(t, program, f, tables)
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

// needsSwitch reports whether a credit loop uses a route to the LID of a switch. Such routes carry management packets, and
// no data to a host. We count them, as a host can send to any LID; ibdmchk does not.
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
