package satest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sa/satest"
	"portcullis/fabricsm/transport/ibsim/ibsimlab"
	"portcullis/packaging/testenv"
)

// built is a directory with the files that tests share.
var built string

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "salab"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// build makes a portcullisd, once.
var build = sync.OnceValues(func() (string, error) {
	return filepath.Join(built, "portcullisd"), testenv.Build(context.Background(), built, "cmd/portcullisd")
})

func portcullisd(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// site is a lab and how both Subnet Managers are started in it.
type site struct {
	lab     *ibsimlab.Lab
	preload satest.Preload
	theirs  satest.OpenSM
	ours    satest.Portcullis
}

// newSite is a fabric with partitions, the SA_Key the same for both.
func newSite(t testing.TB, lab *ibsimlab.Lab, partitions string) *site {
	t.Helper()
	conf := file(t, lab, "partitions.conf", partitions)
	key := file(t, lab, "sa.key", fmt.Sprintf("%#016x\n", uint64(trustedKey)))
	pre := preload(t)
	return &site{
		lab: lab, preload: pre,
		theirs: satest.OpenSM{Preload: pre, Options: openSMOptions, Partitions: conf},
		ours:   satest.Portcullis{Program: portcullisd(t), Partitions: conf, Args: []string{"--sa-key-file", key}},
	}
}

// both runs a function under OpenSM and then under our manager, on the same fabric. Our manager keeps the LIDs and routes
// that OpenSM assigned.
func (s *site) both(t testing.TB, do func(ours bool)) {
	t.Helper()
	m, err := s.theirs.Start(t.Context(), s.lab)
	while(t, m, err, func() { do(false) })
	m, err = s.ours.Start(t.Context(), s.lab)
	while(t, m, err, func() {
		s.named(t)
		do(true)
	})
}

// named waits until we have read the names of nodes, which we do after all else.
func (s *site) named(t testing.TB) {
	t.Helper()
	c := dial(t, s.lab, "sm")
	for until := time.Now().Add(time.Minute); ; {
		a, err := c.Ask(satest.Question{Method: mad.MethodGetTable, Attr: mad.AttrNodeRecord, Key: trusted})
		if err != nil {
			t.Fatal(err)
		}
		nameless := slices.ContainsFunc(a.Records(), func(r []byte) bool { return r[44] == 0 })
		if len(a.Records()) > 0 && !nameless {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("nodes have no names yet, of %d", len(a.Records()))
		}
	}
}

var trusted = ib.NewSAKey(trustedKey)
