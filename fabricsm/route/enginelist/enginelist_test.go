package enginelist_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/route"
	"portcullis/fabricsm/route/enginelist"
	"portcullis/fabricsm/topo/topotest"
)

func TestEngines(t *testing.T) {
	all := "there is no routing engine %q: want some of " + strings.Join(enginelist.Names(), ", ")
	tests := []struct{ list, want, err string }{
		{enginelist.Default, "minhop,updn", ""},
		{"ftree", "ftree", ""},
		{"Torus-2qos, DFSSSP ,updn", "torus-2QoS,dfsssp,updn", ""},
		{"ftree,updn,no_fallback", "ftree,updn", ""},
		{"", "", fmt.Sprintf(all, "")},
		{"ftree,", "", fmt.Sprintf(all, "")},
		{"minhop,nue", "", fmt.Sprintf(all, "nue")},
		{"no_fallback", "", `"no_fallback" stands at the end of a list, after the engines`},
		{"no_fallback,updn", "", `"no_fallback" stands at the end of a list, after the engines`},
		{"updn,minhop,UPDN", "", "routing engine updn is listed twice"},
	}
	for _, tt := range tests {
		t.Run(tt.list, func(t *testing.T) {
			engines, err := (&enginelist.Settings{}).Engines(tt.list)
			var names []string
			for _, e := range engines {
				names = append(names, e.Name())
			}
			msg := ""
			if err != nil {
				msg = err.Error()
			}
			if got := strings.Join(names, ","); got != tt.want || msg != tt.err {
				t.Errorf("got %s, error %q; want %s, error %q", got, msg, tt.want, tt.err)
			}
			if err := enginelist.Check(tt.list); (err == nil) != (tt.err == "") {
				t.Errorf("check gives %v", err)
			}
		})
	}
}

// TestEveryEngineGoesByItsName: the name of an engine in a list is that in its tables.
func TestEveryEngineGoesByItsName(t *testing.T) {
	for _, name := range enginelist.Names() {
		engines, err := (&enginelist.Settings{}).Engines(name)
		if err != nil || len(engines) != 1 || engines[0].Name() != name {
			t.Errorf("%s gives %v, %v", name, engines, err)
		}
	}
}

// TestPassedOver: an engine that is not made for a fabric is passed over with a
// reason, and no engine is added to the list.
func TestPassedOver(t *testing.T) {
	f := topotest.Torus(5, 5, 1).Fabric()
	engines, err := (&enginelist.Settings{Lanes: 8}).Engines("ftree,minhop,torus-2QoS,updn")
	if err != nil {
		t.Fatal(err)
	}
	c, err := route.First(f, nil, engines...)
	if err != nil {
		t.Fatal(err)
	}
	if c.Tables.Engine != "torus-2QoS" || len(c.Refused) != 2 || !strings.Contains(c.Refused[0].Error(), "routing engine ftree: ") || !strings.Contains(c.Refused[1].Error(), "routing engine minhop: credit loop") {
		t.Errorf("engine %s, passed over: %v", c.Tables.Engine, c.Refused)
	}
	if c, err := route.First(f, nil, engines[:2]...); err == nil || c.Tables != nil {
		t.Errorf("without the others it got tables of %v", c.Tables)
	}
}

func TestFiles(t *testing.T) {
	files := map[string]string{
		"roots": "0x0010000200000001\n0x99\n", "cns": "0x0020000000000001\n", "ios": "0x0020000000000077",
		"torus": "torus 5 1 1\nxp_link 0x5 0x6", "bad": "x\n", "worse": "mesh",
		"groups": "0x9 1\n", "order": "0x10 2 1\n", "lfts": "Unicast lids [0-1] of switch Lid 1 guid 0x10 ('a'):\n0x0001 000\n",
	}
	read := func(name string, _ int) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, errors.New("open " + name + ": no such file")
	}
	var s enginelist.Settings
	if err := s.Read(enginelist.Files{
		Roots: "roots", ComputeNodes: "cns", IONodes: "ios", Torus: "torus", Groups: "groups", PortOrder: "order", LFTs: "lfts",
	}, read); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.Roots, []ib.GUID{0x0010000200000001, 0x99}); d != "" {
		t.Errorf("(-got +want):\n%s", d)
	}
	want := []string{
		"root switch 0x0000000000000099 is not in the fabric",
		"I/O node port 0x0020000000000077 is not in the fabric",
		"seed switch 0x0000000000000005 is not in the fabric",
		"switch of a group 0x0000000000000009 is not in the fabric",
		"switch with an order of ports 0x0000000000000010 is not in the fabric",
	}
	engines, err := s.Engines("updn,ftree,torus-2QoS,dfp,dor,file")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(enginelist.Missing(engines, topotest.FatTree2(36, 36).Fabric()), want); d != "" {
		t.Errorf("missing (-got +want):\n%s", d)
	}
	err = s.Read(enginelist.Files{Roots: "bad", ComputeNodes: "none", Torus: "worse"}, read)
	if err == nil || !strings.HasPrefix(err.Error(), "bad:1: ") || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v, want a line for each file", err)
	}
}

func TestMissingIsShort(t *testing.T) {
	s := enginelist.Settings{}
	for g := range ib.GUID(50) {
		s.Roots = append(s.Roots, g+1)
	}
	engines, err := s.Engines("updn")
	if err != nil {
		t.Fatal(err)
	}
	got := enginelist.Missing(engines, topotest.Single(2, 4).Fabric())
	if len(got) != 11 || got[10] != "and 40 more of the list: root switch" {
		t.Errorf("got %d sentences, the last: %s", len(got), got[len(got)-1])
	}
}
