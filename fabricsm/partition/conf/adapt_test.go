package conf

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdapt(t *testing.T) {
	const file = `# of OpenSM
Default=0x7fff, ipoib : ALL=full, SELF=limited, # all
  0x10=full, ALL_SWITCHES=full ;
A=0x1, indx0, defmember=full : 0x11, 0x12=limited,
	mgid=ff12::1, sl=1
	ALL ; B=2 : ALL=full, ALL_SWITCHES; C=3 : ALL_CAS=full;
`
	const want = `# of OpenSM
Default=0x7fff, ipoib : ALL=limited, SELF=full, # all
 0x10=limited;
A=0x1, defmember=full : 0x11,
	mgid=ff12::1, sl=1
 ALL_CAS=full, ALL_ROUTERS=full; B=2 : ALL_CAS=full, ALL_ROUTERS=full; C=3 : ALL_CAS=full;
`
	out, refused, err := Adapt("f", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(out)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var got []string
	for _, r := range refused {
		got = append(got, fmt.Sprintf("%d %s > %s %v", r.Line, r.Text, r.To, r.Loses))
		if r.Why == "" {
			t.Errorf("%s is refused without a reason", r.Text)
		}
	}
	wantRefused := []string{
		"2 ALL=full > ALL=limited true", "2 SELF=limited > SELF=full false",
		"3 0x10=full > 0x10=limited true", "3 ALL_SWITCHES=full >  false",
		"4 indx0 >  false", "4 0x12=limited >  true",
		"6 ALL > ALL_CAS=full, ALL_ROUTERS=full false",
		"6 ALL=full > ALL_CAS=full, ALL_ROUTERS=full false", "6 ALL_SWITCHES >  false",
	}
	if d := cmp.Diff(wantRefused, got); d != "" {
		t.Errorf("refusals (-want +got):\n%s", d)
	}
	if _, err := Parse("g", out); err != nil {
		t.Errorf("what was adapted is refused: %v", err)
	}
	if _, _, err := Adapt("f", []byte("A=1 : 0x11=f;")); err == nil || !strings.HasPrefix(err.Error(), "f:1: membership") {
		t.Errorf("a mistake of the grammar: %v", err)
	}
	if _, _, err := Adapt("f", make([]byte, MaxSize+1)); err == nil {
		t.Error("a file that is too large was adapted")
	}
}

// FuzzAdapt: what is adapted is accepted, and has no member that the file did not name.
func FuzzAdapt(f *testing.F) {
	f.Add("A=1,indx0:ALL=full,0x5=limited;\nDefault=0x7fff:ALL=full;")
	f.Add("B:0x1=both\n,ALL_SWITCHES;mgid\n=ff12::1;C=2:mgid=ff12::2;")
	f.Fuzz(func(t *testing.T, file string) {
		out, refused, err := Adapt("f", []byte(file))
		if err != nil {
			return
		}
		r, err := Parse("f", out)
		if err != nil {
			t.Fatalf("%q became %q: %v", file, out, err)
		}
		if len(refused) == 0 {
			same, err := Parse("f", []byte(file))
			if err != nil || !cmp.Equal(same.Partitions, r.Partitions) {
				t.Fatalf("%q became %q without a word: %v", file, out, err)
			}
		}
	})
}
