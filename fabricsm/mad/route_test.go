package mad

import (
	"strings"
	"testing"

	"portcullis/fabricsm/ib"
)

func TestParseRoute(t *testing.T) {
	tests := []struct {
		in   string
		want Route
		err  string
	}{
		{in: "0", want: Route{}},
		{in: "0,1,19", want: MakeRoute(1, 19)},
		{in: "", err: `directed route "": want 0 and the egress ports, for example 0,1,19`},
		{in: "1,2", err: `directed route "1,2": want 0 and the egress ports, for example 0,1,19`},
		{in: "0,", err: `directed route "0,": port "": want no sign, space or underscore`},
		{in: "0,255", err: `directed route "0,255": port "255": value out of range`},
		{in: "0" + strings.Repeat(",1", 64), err: `directed route "0` + strings.Repeat(",1", 64) + `": more than 63 hops`},
	}
	for _, c := range tests {
		t.Run(c.in, func(t *testing.T) {
			got, err := ParseRoute(c.in)
			if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
				t.Errorf("got %v, %v, want %v, %q", got, err, c.want, c.err)
			}
			if err == nil && got.String() != c.in {
				t.Errorf("String %q", got)
			}
		})
	}
}

func TestRouteGrows(t *testing.T) {
	var r Route
	for i := range MaxHops {
		next, ok := r.Append(ib.PortNum(i + 1))
		if !ok || next.Len() != i+1 || next.At(i) != ib.PortNum(i+1) {
			t.Fatalf("hop %d: %v, %v", i, next, ok)
		}
		if next == r {
			t.Fatal("routes of different length are equal")
		}
		r = next
	}
	if same, ok := r.Append(1); ok || same != r {
		t.Errorf("a route of %d hops grew", same.Len())
	}
	text, err := r.MarshalText()
	var back Route
	if err != nil || back.UnmarshalText(text) != nil || back != r {
		t.Errorf("%s read back as %v", text, back)
	}
}

func TestRoutePanics(t *testing.T) {
	for name, f := range map[string]func(){
		"too long":    func() { MakeRoute(make([]ib.PortNum, 64)...) },
		"no such hop": func() { MakeRoute(1).At(1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}
