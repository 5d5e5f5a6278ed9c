package chain

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func entries(t *testing.T, actor string, n int) []Entry {
	t.Helper()
	var out []Entry
	var head Head
	for i := range n {
		e := Entry{Seq: head.Seq + 1, Prev: head.Hash, Time: time.Unix(int64(i), 0).UTC(), Actor: actor, Action: "host.assign", Object: "host/h"}
		sum, err := e.Sum()
		if err != nil {
			t.Fatal(err)
		}
		e.Hash = sum
		head = Head{Seq: e.Seq, Hash: e.Hash}
		out = append(out, e)
	}
	return out
}

func check(log []Entry, anchors []Anchor) error {
	c, k := Chain{}, Check{Anchors: anchors}
	for i := range log {
		if err := c.Add(&log[i]); err != nil {
			return err
		}
		k.Add(&log[i])
	}
	return k.End(c.Head())
}

func TestCheck(t *testing.T) {
	log, other := entries(t, "alice", 5), entries(t, "mallory", 5)
	anchor := func(e Entry) Anchor { return Anchor{Time: e.Time, Seq: e.Seq, Hash: e.Hash} }
	for _, tt := range []struct {
		name    string
		log     []Entry
		anchors []Anchor
		want    string // in the error; empty: all are in the log
	}{
		{"none", log, nil, ""},
		{"all", log, []Anchor{anchor(log[0]), anchor(log[2]), anchor(log[2]), anchor(log[4])}, ""},
		{"rolled back", log[:3], []Anchor{anchor(log[0]), anchor(log[4])}, "the log ends at entry 3"},
		{"all lost", nil, []Anchor{anchor(log[0])}, "the log ends at entry 0"},
		{"another log", other, []Anchor{anchor(log[3])}, "audit entry 4 is not the one"},
	} {
		err := check(tt.log, tt.anchors)
		if got := fmt.Sprint(err); (err == nil) != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %q", tt.name, got, tt.want)
		}
	}
}

func TestReadAnchors(t *testing.T) {
	hash := strings.Repeat("ab", 32)
	line := func(seq int) string {
		return fmt.Sprintf(`{"time":"2026-01-02T03:04:05Z","seq":%d,"hash":%q}`+"\n", seq, hash)
	}
	got, err := ReadAnchors(strings.NewReader(line(9) + line(3) + `{"time":"2026-`))
	if err != nil || len(got) != 2 || got[0].Seq != 3 || got[1].Seq != 9 || got[1].Hash != hash {
		t.Errorf("%+v, %v", got, err)
	}
	for name, text := range map[string]string{
		"no JSON": "seq 3\n", "no sequence": line(0), "short hash": `{"seq":1,"hash":"ab"}` + "\n", "empty line": line(1) + "\n" + line(2),
		"long": `{"seq":1,"origin":"` + strings.Repeat("x", maxAnchorLine) + `"}` + "\n",
	} {
		if _, err := ReadAnchors(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v, want an error that names the line", name, err)
		}
	}
}

// An anchor in the log of a service, as text or as the journal has it, is the anchor that was written, and its signature
// is of the same bytes.
func TestReadAnchorsOfALog(t *testing.T) {
	want := Anchor{
		Time: time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC), Service: "rack=7", Origin: strings.Repeat("cd", 32), Branch: 2,
		Seq: 9, Hash: strings.Repeat("ab", 32), JWS: "eyJhIjoxfQ..c2ln",
	}
	var fields []string
	for _, f := range want.Fields() {
		fields = append(fields, f[0]+"="+f[1])
	}
	var text strings.Builder
	attrs := []any{}
	for _, f := range want.Fields() {
		attrs = append(attrs, f[0], f[1])
	}
	slog.New(slog.NewTextHandler(&text, nil)).Info(strings.TrimSpace(Marker), attrs...)
	for _, line := range []string{text.String(), "Jan 02 03:04:05 sm-1 portcullisd[7]: " + Marker + strings.Join(fields, " ") + "\n"} {
		got, err := ReadAnchors(strings.NewReader(line))
		if err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v, %v; want %+v", line, got, err, want)
		}
	}
	for _, line := range []string{"seq=9", "seq=9 seq=9 " + strings.Join(fields[1:], " "), "seq=x " + strings.Join(fields[1:], " "), "seq " + strings.Join(fields[1:], " ")} {
		if _, err := ReadAnchors(strings.NewReader(Marker + line + "\n")); err == nil {
			t.Errorf("%s: no error", line)
		}
	}
}
