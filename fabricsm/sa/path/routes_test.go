package path_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/sa/path"
)

func TestParseRoutes(t *testing.T) {
	got, err := path.ParseRoutes("f", []byte("# routers\n0xfec0000000000001 0x0002c90300000010 # one\n\n0xfec0000000000002\t*\n* 0x11\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []path.PrefixRoute{{Prefix: 0xfec0000000000001, Router: 0x0002c90300000010}, {Prefix: 0xfec0000000000002}, {Router: 0x11}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("routes (-want +got):\n%s", d)
	}
}

func TestParseRoutesRefuses(t *testing.T) {
	_, err := path.ParseRoutes("f", []byte("0xfec0000000000001\nx *\n0xfe80000000000000 *\n0xfec0000000000001 0\n0xfec0000000000001 *\n0xfec0000000000001 0x1\n* *\n0xfec0000000000003 *\n"))
	if err == nil {
		t.Fatal("accepted")
	}
	said := strings.Split(err.Error(), "\n")
	want := []string{"f:1: 1 words", "f:2: ", "f:3: 0xfe80000000000000 is the prefix of no other subnet", "f:4: ", "f:6: a line before", "f:8: a line before"}
	if len(said) != len(want) {
		t.Fatalf("%d problems, want %d:\n%v", len(said), len(want), err)
	}
	for i := range want {
		if !strings.HasPrefix(said[i], want[i]) {
			t.Errorf("problem %q, want %q", said[i], want[i])
		}
	}
	if _, err := path.ParseRoutes("f", make([]byte, path.MaxRoutesSize+1)); !errors.Is(err, path.ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	if _, err := path.ParseRoutes("f", []byte(strings.Repeat("x\n", 1000))); strings.Count(err.Error(), "\n") != 49 {
		t.Errorf("1000 problems are told as %d", strings.Count(err.Error(), "\n")+1)
	}
}

func FuzzParseRoutes(f *testing.F) {
	f.Add("* *\n")
	f.Add("0xfec0000000000001 0x0002c90300000010 # one")
	f.Add("0xfec0000000000001 * *")
	f.Fuzz(func(t *testing.T, text string) {
		routes, err := path.ParseRoutes("f", []byte(text))
		if err != nil && routes != nil {
			t.Error("routes and an error")
		}
		if err == nil {
			if _, err := path.New(path.Config{Routes: routes}); err != nil {
				t.Errorf("what was read is refused: %v", err)
			}
		}
	})
}
