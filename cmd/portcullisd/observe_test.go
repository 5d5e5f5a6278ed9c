package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/cmd/portcullisd/observe"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/shadow"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/fabricsm/transport/ibsim/ibsimtest"
)

// reigning is a real OpenSM that goes on ruling.
type reigning struct {
	t     *testing.T
	cache string
	log   string
	stop  func() // waits until it has ended
}

// rests is how long OpenSM logs nothing when it has no more sweeps to make: it makes another one, for traps of the first, within
// a second.
const rests = 3 * time.Second

// reign starts a real OpenSM at the node sm, and waits until the fabric is up.
func reign(t *testing.T, client ibsimlab.Client, options string) *reigning {
	t.Helper()
	r := &reigning{t: t, cache: t.TempDir()}
	conf := filepath.Join(r.cache, "opensm.conf")
	write(t, conf, options+"force_log_flush TRUE\n")
	r.log = filepath.Join(r.cache, "opensm.log")
	cmd, err := client.Command(context.WithoutCancel(t.Context()), "sm", "opensm", "-e", "-s", "0", "-D", "0x47", "-F", conf, "-f", r.log)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Environ(), "OSM_CACHE_DIR="+r.cache, "OSM_TMP_DIR="+r.cache)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is stopped by a signal
	}()
	r.stop = func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(politely):
			_ = cmd.Process.Kill()
			<-ended
		}
	}
	t.Cleanup(r.stop)
	was, since := "", time.Now()
	eventually(t, "OpenSM to bring the fabric up, and to rest", func() (bool, string) {
		text := r.said()
		if text != was {
			was, since = text, time.Now()
		}
		return ibsimlab.CameUp([]byte(text)) && time.Since(since) > rests, text
	})
	return r
}

func (r *reigning) said() string {
	text, err := os.ReadFile(r.log)
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return string(text)
}

// observed runs "portcullisd observe", and returns its report.
func observed(t *testing.T, dir string, more ...string) (*observe.Result, int, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out, errs strings.Builder
	args := append([]string{"observe", "--config", filepath.Join(dir, "portcullisd.yaml"), "-o", "json"}, more...)
	code := run(ctx, args, time.Now, nil, &out, &errs)
	var r observe.Result
	if code == 0 || code == 8 {
		if err := json.Unmarshal([]byte(out.String()), &r); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
	}
	return &r, code, errs.String()
}

// seen is what devices of a simulated fabric hold, by what it is.
func (f *keyFabric) seen() map[string]string {
	out := make(map[string]string)
	for i := range f.list.Nodes {
		n := &f.list.Nodes[i]
		for num := range n.Ports {
			sw := n.Type == ib.NodeSwitch
			if num == 0 && !sw || num > 0 && n.Ports[num].Peer == "" {
				continue
			}
			at := fmt.Sprintf(" of %s/%d", n.Name, num)
			pi := f.PortInfo(n.Name, ib.PortNum(num))
			out["PortState"+at] = pi.PortState.String()
			out["NeighborMTU"+at] = pi.NeighborMTU.String()
			if sw && num > 0 {
				out["PartitionEnforcementInbound"+at] = fmt.Sprint(pi.PartitionEnforcementInbound)
				out["PartitionEnforcementOutbound"+at] = fmt.Sprint(pi.PartitionEnforcementOutbound)
			} else {
				out["LID"+at], out["LMC"+at], out["MasterSMLID"+at] = fmt.Sprint(pi.LID), fmt.Sprint(pi.LMC), fmt.Sprint(pi.MasterSMLID)
			}
			var keys []string
			for _, k := range f.PKeyTable(n.Name, ib.PortNum(num)) {
				if k.Valid() {
					keys = append(keys, k.String())
				}
			}
			slices.Sort(keys)
			out["P_Keys"+at] = strings.Join(keys, " ")
		}
		for lid := ib.LID(1); n.Type == ib.NodeSwitch && lid < 64; lid++ {
			out[fmt.Sprintf("LID %d of %s/0", lid, n.Name)] = fmt.Sprint(f.Egress(n.Name, lid))
		}
	}
	return out
}

// predicted does to what a fabric holds what a report says.
func (f *keyFabric) predicted(t *testing.T, before map[string]string, r *observe.Result) map[string]string {
	t.Helper()
	out := maps.Clone(before)
	for i := range r.Changes {
		c := &r.Changes[i]
		i := slices.IndexFunc(f.list.Nodes, func(n netlist.Node) bool { return n.GUID == c.Where.NodeGUID })
		if i < 0 {
			t.Fatalf("no node has the GUID %v", c.Where.NodeGUID)
		}
		n := f.list.Nodes[i].Name
		at := fmt.Sprintf(" of %s/%d", n, c.Where.Port)
		keys := strings.Fields(out["P_Keys"+at])
		switch c.Kind {
		case shadow.KindPKeySwitch:
			keys = strings.Fields(c.To)
		case shadow.KindPKeyLost, shadow.KindPKeyGained:
			keys = slices.DeleteFunc(keys, func(k string) bool { return k == c.From })
			if to, _, _ := strings.Cut(c.To, ","); to != "none" && !slices.Contains(keys, to) {
				keys = append(keys, to)
			}
		case shadow.KindLink:
			_, out["PortState"+at], _ = strings.Cut(c.To, "goes down, then ")
		case shadow.KindRouteGained, shadow.KindRouteLost, shadow.KindRouteMoved, shadow.KindRouteUnused:
			what, _, _ := strings.Cut(c.What, " of ")
			_, port, _ := strings.Cut(strings.Replace(c.To, "none", "port 255", 1), " ")
			out[what+at] = port
		default:
			if _, ok := out[c.What+at]; ok {
				out[c.What+at] = c.To
			}
		}
		slices.Sort(keys)
		if _, ok := out["P_Keys"+at]; ok {
			out["P_Keys"+at] = strings.Join(keys, " ")
		}
	}
	return out
}

// TestObserveIsTrue: beside a real OpenSM that rules, nothing is written and OpenSM notices nothing. Then OpenSM ends, ours
// takes over with the same configuration, and the fabric changes as predicted.
func TestObserveIsTrue(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "opensm")
	for _, tt := range []struct {
		name, node string
		theirs     string // partitions
		ours       string
		options    string // of ours
		code       int
		foreign    int // P_Keys that ours does not explain
		noticed    []shadow.Kind
	}{
		{
			name: "the same configuration", node: "sm",
			theirs: "Default=0x7fff : ALL=limited, SELF=full;\nA=0x1 : ALL_CAS=full;\n", ours: "A=0x1 : ALL_CAS=full;\n",
		},
		{
			name: "members are lost, and foreign P_Keys", node: "h1",
			theirs: "Default=0x7fff : ALL=full;\nA=0x1 : ALL_CAS=full;\nF=0x12 : ALL_CAS=full;\n", ours: "A=0x1 : ALL_CAS=full;\n",
			code: 8, foreign: 4, noticed: []shadow.Kind{shadow.KindPKeyLost},
		},
		{
			name: "two LIDs for every port", node: "sm", options: "  lmc: 1\n",
			theirs: "Default=0x7fff : ALL=limited, SELF=full;\n", ours: "\n",
			code: 8, noticed: []shadow.Kind{shadow.KindLMC},
		},
		{
			name: "a port that is switched off", node: "sm", options: "  ports:\n    rules: [{guid: 0x0010000100000002, port: 1, disabled: true}]\n",
			theirs: "Default=0x7fff : ALL=limited, SELF=full;\n", ours: "\n",
			code: 8, noticed: []shadow.Kind{shadow.KindLink},
		},
		{
			name: "links that train again", node: "sm", options: "  ports:\n    link_speed: SDR\n    retrain: true\n",
			theirs: "Default=0x7fff : ALL=limited, SELF=full;\n", ours: "\n",
			code: 8, noticed: []shadow.Kind{shadow.KindLink},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := servedKeyFabric(t, sim.Modern())
			rules := filepath.Join(t.TempDir(), "theirs.conf")
			write(t, rules, tt.theirs)
			theirs := reign(t, f.client, "partition_config_file "+rules+"\n")
			dir := t.TempDir()
			write(t, filepath.Join(dir, "portcullisd.yaml"), "fabric:\n  port: ibsim:"+f.client.Socket+"/"+tt.node+"\n"+tt.options)
			partitions := filepath.Join(dir, "partitions.conf")
			write(t, partitions, tt.ours)

			before, writes, log := f.seen(), f.Sets(), theirs.said()
			r, code, errs := observed(t, dir, "--partitions", partitions)
			if code != tt.code {
				t.Fatalf("exit code %d: %s", code, errs)
			}
			if d := cmp.Diff(before, f.seen()); d != "" {
				t.Errorf("the fabric (-before +after):\n%s", d)
			}
			if d := cmp.Diff(writes, f.Sets()); d != "" {
				t.Errorf("writes (-before +after):\n%s", d)
			}
			if more := strings.TrimPrefix(theirs.said(), log); more != "" {
				t.Errorf("OpenSM says:\n%s", more)
			}
			if len(r.Managers) != 1 || r.Managers[0].Device != "sm" {
				t.Errorf("managers are %+v", r.Managers)
			}
			var noticed []shadow.Kind
			for i := range r.Summary {
				if r.Summary[i].Noticed > 0 {
					noticed = append(noticed, r.Summary[i].Kind)
				}
				if r.Summary[i].Kind == shadow.KindLID && r.Summary[i].Changes > 0 && tt.options == "" {
					t.Error(r.Summary[i].Text)
				}
			}
			if len(r.Foreign) != tt.foreign {
				t.Errorf("%d P_Keys are foreign: %+v", len(r.Foreign), r.Foreign)
			}
			for _, x := range r.Foreign {
				if x.PKey != 0x8012 || x.Kept {
					t.Errorf("foreign: %s", x.Text)
				}
			}
			for _, k := range tt.noticed {
				if !slices.Contains(noticed, k) {
					t.Errorf("noticed are %v, want %v", noticed, k)
				}
			}

			theirs.stop()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var out, said strings.Builder
			args := []string{"sm", "--config", filepath.Join(dir, "portcullisd.yaml"), "--partitions", partitions, "--once"}
			if code := run(ctx, args, time.Now, nil, &out, &said); code != 0 {
				t.Fatalf("exit code %d: %s%s", code, &out, &said)
			}
			if d := cmp.Diff(f.predicted(t, before, r), f.seen()); d != "" {
				t.Errorf("the fabric (-predicted +taken over):\n%s", d)
			}
			if slices.Contains(tt.noticed, shadow.KindLink) {
				return // devices report links that come and go, and each report is work, in the order in which they arrive
			}
			done := f.Sets()[tt.node]
			if earlier, ok := writes[tt.node]; ok {
				for attr, n := range earlier.ByAttr {
					done.ByAttr[attr] -= n
				}
			}
			for attr, n := range done.ByAttr {
				predicted := uint64(0)
				for _, s := range r.SMPs.ByKind {
					if s.Attribute == attr.String() {
						predicted = s.Sent
					}
				}
				if predicted != n {
					t.Errorf("%v: %d were sent, %d were predicted", attr, n, predicted)
				}
			}
		})
	}
}

// TestObserveWithoutTheKey: a fabric that OpenSM has locked is read with the keys that import took over. Without them the
// run ends with an error that says so, after few requests.
func TestObserveWithoutTheKey(t *testing.T) {
	t.Parallel()
	ibsimtest.Need(t, "opensm")
	for level := range 3 {
		t.Run(fmt.Sprint("level ", level), func(t *testing.T) {
			t.Parallel()
			observeLocked(t, level)
		})
	}
}

func observeLocked(t *testing.T, level int) {
	f := servedKeyFabric(t, sim.Modern())
	theirs := reign(t, f.client, fmt.Sprintf("m_key 0x5eed0c0ffee01234\nm_key_protection_level %d\nm_key_lease_period 60\n", level))
	write(t, filepath.Join(theirs.cache, "partitions.conf"), "Default=0x7fff : ALL=limited, SELF=full;\n")
	writes := f.Sets()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "portcullisd.yaml"), "fabric:\n  port: ibsim:"+f.client.Socket+"/h1\n")
	if r, code, errs := observed(t, dir); code != 1 || !strings.Contains(errs, "M_Key") || !strings.Contains(errs, "portcullis import") {
		t.Errorf("exit code %d: %s, %+v", code, errs, r)
	}
	before := f.endPorts()
	site := siteIn(t, theirs.cache)
	site.Port = "ibsim:" + f.client.Socket + "/h1"
	dir = t.TempDir()
	moved(t, dir, site)
	r, code, errs := observed(t, dir, "--partitions", filepath.Join(dir, "partitions.conf"))
	if code != 8 { // OpenSM made all hosts full members of the default partition
		t.Fatalf("exit code %d: %s", code, errs)
	}
	keys := 0
	for i := range r.Changes {
		if r.Changes[i].Kind == shadow.KindMKey && r.Changes[i].What == "MKey" {
			keys++
		}
	}
	if keys != len(f.endPorts()) {
		t.Errorf("%d M_Keys would change", keys)
	}
	if d := cmp.Diff(writes, f.Sets()); d != "" {
		t.Errorf("writes (-before +after):\n%s", d)
	}
	if d := cmp.Diff(fmt.Sprint(before), fmt.Sprint(f.endPorts())); d != "" {
		t.Errorf("keys (-before +after):\n%s", d)
	}
}

// TestObserveOnIbsim: on ibsim, too, every table is as before.
func TestObserveOnIbsim(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	reign(t, s.client, "m_key 0x0\n")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "portcullisd.yaml"), "fabric:\n  enforcement: accepted\n  port: ibsim:"+s.client.Socket+"/sm\n")
	dump := func() string {
		_, tables, _ := strings.Cut(ibsimtest.Console(t, s.lab, "dump"), "\n") // the first line has the time
		return tables
	}
	before := dump()
	r, code, errs := observed(t, dir)
	if code != 8 {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if d := cmp.Diff(before, dump()); d != "" {
		t.Errorf("the fabric (-before +after):\n%s", d)
	}
	if r.SMPs.Sets == 0 || len(r.Managers) != 1 {
		t.Errorf("%d Sets, managers %v", r.SMPs.Sets, r.Managers)
	}
}
