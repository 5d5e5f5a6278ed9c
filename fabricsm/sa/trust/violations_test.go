package trust_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/trust"
)

func dropped(v trust.Verdict, e *portindex.EndPort, attr mad.AttrID) *trust.Dropped {
	return &trust.Dropped{
		Verdict: v, Who: portindex.Asker{Port: e.Port, As: e.GUID, LID: e.LID, QP: 1}, Port: e, Attr: attr, Method: mad.MethodGet,
	}
}

// TestViolationsAreToldBySequence: the same request of the same port is reported loudly for the numbers of the sequence,
// and the last count quietly.
func TestViolationsAreToldBySequence(t *testing.T) {
	v := trust.NewViolations(trust.Bounds{})
	if v.Changed() {
		t.Error("an empty list has changed")
	}
	var told []uint64
	for i := range 1234 {
		if e, loud := v.Note(start.Add(time.Duration(i)*time.Millisecond), dropped(trust.WrongKey, host(), mad.AttrPathRecord)); loud {
			told = append(told, e.Count)
		}
	}
	if d := cmp.Diff([]uint64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}, told); d != "" {
		t.Errorf("told (-want +got):\n%s", d)
	}
	if e, loud := v.Note(start, dropped(trust.WrongKey, host(), mad.AttrNodeRecord)); !loud || e.Count != 1 {
		t.Errorf("another request is told %v, count %d", loud, e.Count)
	}
	var quiet []uint64
	if more := v.Report(func(e *trust.Violation) {
		if e.Quiet {
			quiet = append(quiet, e.Count)
		}
	}); more {
		t.Error("there is more to tell")
	}
	if d := cmp.Diff([]uint64{1234}, quiet); d != "" {
		t.Errorf("told quietly (-want +got):\n%s", d)
	}
	if got, want := v.Total(trust.WrongKey), (trust.Total{Count: 1235, Quiet: 1224}); got != want {
		t.Errorf("total %+v, want %+v", got, want)
	}
	if !v.Changed() || v.Changed() {
		t.Error("Changed does not report a change once")
	}
}

// TestViolationsAreBounded drops requests of ever new sources and kinds: the list stays
// small, and its counts add up to all that was dropped.
func TestViolationsAreBounded(t *testing.T) {
	v := trust.NewViolations(trust.Bounds{Rows: 100, PerSource: 5})
	rnd := rand.New(rand.NewPCG(1, 1))
	var want, got [trust.NumVerdicts]uint64
	for range 50_000 {
		d := &trust.Dropped{
			Verdict: trust.Verdict(1 + rnd.IntN(trust.NumVerdicts-1)), Attr: mad.AttrID(rnd.IntN(1 << 16)), Method: mad.Method(rnd.IntN(128)),
			Who: portindex.Asker{LID: ib.LID(rnd.IntN(1 << 16))}, Target: ib.GUID(rnd.Uint64()), Count: rnd.Uint64N(4),
		}
		if rnd.IntN(3) > 0 {
			d.Port = &portindex.EndPort{GUID: ib.GUID(1 + rnd.IntN(300))}
			d.Who.As = d.Port.GUID
		}
		want[d.Verdict] += max(1, d.Count)
		v.Note(start.Add(time.Duration(rnd.IntN(1000))*time.Second), d)
	}
	list := v.List()
	if most := 100 + trust.NumVerdicts; len(list) > most {
		t.Errorf("%d rows, at most %d may be", len(list), most)
	}
	for i := range list {
		got[list[i].Verdict] += list[i].Count
	}
	for k := range want {
		if total := v.Total(trust.Verdict(k)).Count; got[k] != want[k] || total != want[k] {
			t.Errorf("%v: rows have %d, the total is %d, want %d", trust.Verdict(k), got[k], total, want[k])
		}
	}
}

// TestNobodyHasRowsByLID: LIDs that no port has are distinguished, and all together have as many rows as one port.
func TestNobodyHasRowsByLID(t *testing.T) {
	v := trust.NewViolations(trust.Bounds{PerSource: 3})
	for lid := range ib.LID(1000) {
		v.Note(start, &trust.Dropped{Verdict: trust.UnknownSource, Who: portindex.Asker{LID: 0x4000 + lid}, Attr: mad.AttrPathRecord, Method: mad.MethodGet})
	}
	var counts []uint64
	for _, e := range v.List() {
		counts = append(counts, e.Count)
	}
	if d := cmp.Diff([]uint64{1, 1, 1, 997}, counts); d != "" {
		t.Errorf("counts of rows (-want +got):\n%s", d)
	}
}

// TestViolationSays holds the sentences, one for each kind of violation.
func TestViolationSays(t *testing.T) {
	other := &portindex.EndPort{Port: 9, GUID: otherGUID, LID: 12}
	for _, tt := range []struct {
		d    trust.Dropped
		want string
	}{
		{*dropped(trust.WrongKey, host(), mad.AttrPathRecord), "wrong SA_Key, Get PathRecord, by port 0x0002c90300a1b2c3 (LID 7); dropped, number 1"},
		{
			trust.Dropped{Verdict: trust.Proxy, Who: portindex.Asker{As: aliasGUID, LID: 7}, Port: host(), Place: ib.Place{Switch: 0x10, Port: 3}, Attr: mad.AttrMCMemberRecord, Method: mad.MethodDelete, Target: otherGUID, Owner: other},
			"untrusted request in the name of another port, Delete MCMemberRecord, by port 0x0002c90300a1b2c3 as 0x1400a1b2c3000001 (LID 7) at 0x0000000000000010/3, for 0x0002c90300ffee00; dropped, number 1",
		},
		{
			trust.Dropped{Verdict: trust.UnknownSource, Who: portindex.Asker{LID: 99}, Attr: mad.AttrNodeRecord, Method: mad.MethodGetTable},
			"request from a LID that no port has, GetTable NodeRecord, by an unknown sender (LID 99); dropped, number 1",
		},
		{
			trust.Dropped{Verdict: trust.SpoofedSGID, Who: portindex.Asker{As: hostGUID, LID: 7}, Port: host(), Attr: mad.AttrPathRecord, Method: mad.MethodGet, SGID: ib.MakeGID(ib.DefaultPrefix, otherGUID)},
			"source GID of another, Get PathRecord, by port 0x0002c90300a1b2c3 (LID 7), which showed fe80::2:c903:ff:ee00; dropped, number 1",
		},
		{trust.Dropped{Verdict: trust.Flood, Who: portindex.Asker{As: hostGUID, LID: 7}, Port: host(), Count: 70}, "flood of packets by port 0x0002c90300a1b2c3 (LID 7); dropped, number 70"},
	} {
		e, loud := trust.NewViolations(trust.Bounds{}).Note(start, &tt.d)
		if got := e.String(); !loud || got != tt.want {
			t.Errorf("told %v:\n got %s\nwant %s", loud, got, tt.want)
		}
	}
	seen := make(map[string]bool)
	for k := range trust.NumVerdicts {
		v := trust.Verdict(k)
		e := trust.Violation{Verdict: v}
		if name := v.String(); name == "" || seen[name] || v != trust.OK && strings.HasPrefix(e.String(), " ") {
			t.Errorf("verdict %d: name %q, sentence %q", k, name, e.String())
		}
		seen[v.String()] = true
	}
}

// TestNotices compares the bytes of each vendor notice with the layout of the reference.
func TestNotices(t *testing.T) {
	gid := ib.MakeGID(ib.DefaultPrefix, aliasGUID)
	spoofed := ib.MakeGID(ib.DefaultPrefix, otherGUID)
	owner := &portindex.EndPort{Port: 9, GUID: otherGUID, LID: 12}
	want := map[trust.Verdict]func(d []byte){
		trust.WrongKey:             func(d []byte) { copy(d[16:], gid[:]) },
		trust.RetiredKey:           func(d []byte) { copy(d[16:], gid[:]) },
		trust.SpoofedSGID:          func(d []byte) { copy(d[16:], spoofed[:]) },
		trust.TooOften:             func(d []byte) { copy(d[16:], gid[:]) },
		trust.Flood:                func(d []byte) { copy(d[16:], gid[:]) },
		trust.TooManyGroups:        func(d []byte) { copy(d[16:], gid[:]) },
		trust.TooManyServices:      func(d []byte) { copy(d[16:], gid[:]) },
		trust.TooManySubscriptions: func(d []byte) { copy(d[16:], gid[:]) },
	}
	numbers := map[trust.Verdict]uint16{
		trust.WrongKey: 1300, trust.RetiredKey: 1300, trust.SpoofedSGID: 1301, trust.TooOften: 1302, trust.Flood: 1302,
		trust.TooManyGroups: 1303, trust.TooManyServices: 1304, trust.TooManySubscriptions: 1305,
	}
	for k := range trust.NumVerdicts {
		v := trust.Verdict(k)
		e, _ := trust.NewViolations(trust.Bounds{}).Note(start, &trust.Dropped{
			Verdict: v, Who: portindex.Asker{As: aliasGUID, LID: 7}, Port: host(), Attr: mad.AttrServiceRecord, Method: mad.MethodSet,
			SGID: spoofed, Target: otherGUID, Owner: owner,
		})
		n, ok := e.Notice(ib.DefaultPrefix)
		fill := want[v]
		if ok != (fill != nil) {
			t.Errorf("%v: notice %v", v, ok)
		}
		if !ok || fill == nil {
			continue
		}
		var got, data [mad.DataSize]byte
		if err := mad.Encode(got[:], &n); err != nil {
			t.Fatal(err)
		}
		data[0], data[1], data[2], data[3] = byte(mad.NoticeSecurity), 0x00, 0x02, 0xc9
		number := numbers[v]
		if number <= 1301 {
			data[11], data[13], data[14] = 7, 0x31, 0x02
		}
		fill(data[:])
		put(data[32:], hostGUID)
		if number >= 1303 {
			put(data[40:], otherGUID)
			put(data[48:], otherGUID)
		}
		data[62], data[63] = byte(number>>8), byte(number)
		if d := cmp.Diff(fmt.Sprintf("%x", data), fmt.Sprintf("%x", got)); d != "" {
			t.Errorf("%v (-want +got):\n%s", v, d)
		}
	}
}

func put(to []byte, g ib.GUID) {
	for i := range 8 {
		to[i] = byte(g >> (56 - 8*i))
	}
}
