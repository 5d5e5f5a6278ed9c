package memory_test

import (
	"bytes"
	"testing"
	"time"

	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
)

// TestConformance: it does what the real store does.
func TestConformance(t *testing.T) {
	storetest.Conformance(t, func(t testing.TB) *store.Store {
		s := store.New(memory.New(time.Now), "")
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	})
}

// TestDump: a deleted record is in a dump, as it may be on a disk.
func TestDump(t *testing.T) {
	b := memory.New(time.Now)
	for _, do := range []store.Op{{Key: "k", Value: []byte("first")}, {Key: "k", Delete: true}} {
		if _, err := b.Commit(t.Context(), store.Batch{Do: []store.Op{do}}); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Contains(b.Dump(), []byte("k\tfirst\n")) {
		t.Errorf("the dump is %q", b.Dump())
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Read(t.Context(), "k", false, 0); err == nil {
		t.Error("a closed store is read")
	}
}
