package etcd_test

import (
	"errors"
	"testing"
	"time"

	"portcullis/api/store"
	"portcullis/api/store/etcd/etcdtest"
)

// TestForeignWithoutQuorum holds that a member which lost the others vouches for no record that a transaction remembers: they
// may have changed it meanwhile.
func TestForeignWithoutQuorum(t *testing.T) {
	t.Parallel()
	c := etcdtest.Start(t, 3)
	r := c.Remote()
	r.Endpoints, r.RequestTimeout = r.Endpoints[2:], 5*time.Second
	s := openRemote(t, r, "")
	eventually(t, "a record is written", func() error {
		_, err := s.Update(t.Context(), func(tx *store.Tx) error { return words().Put(tx, "a", word{"a"}) })
		return err
	})
	view := func() error {
		_, err := s.View(t.Context(), func(r store.Reader) error { _, err := words().Get(t.Context(), r, "a"); return err })
		return err
	}
	errRefused := errors.New("refused")
	refuse := func() error {
		_, err := s.Update(t.Context(), func(tx *store.Tx) error {
			if _, err := words().Get(t.Context(), tx, "a"); err != nil {
				return err
			}
			return errRefused
		})
		return err
	}
	eventually(t, "the record is shown", view)
	if err := refuse(); !errors.Is(err, errRefused) {
		t.Errorf("with a quorum: %v", err)
	}
	c.Kill(0)
	c.Kill(1)
	if err := refuse(); err == nil || errors.Is(err, errRefused) {
		t.Errorf("without a quorum, what rests on a remembered record is returned: %v", err)
	}
	c.Restart(0)
	eventually(t, "the record is shown again", view)
	c.Kill(0)
	if err := view(); err == nil {
		t.Error("without a quorum, a remembered record is shown")
	}
}
