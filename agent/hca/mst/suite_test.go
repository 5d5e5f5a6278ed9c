package mst

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"portcullis/agent/hca/register"
	"portcullis/packaging/testenv"
)

func TestFind(t *testing.T) {
	dir := t.TempDir()
	tool := func(name, text string, mode os.FileMode) {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+text+"'\n"), mode))
	}
	if _, err := Find(t.Context(), []string{dir}); !errors.Is(err, ErrNone) {
		t.Errorf("nothing installed: got %v", err)
	}
	tool("mstflint", "mstflint, mstflint 4.36.0, x", 0o644)
	if _, err := Find(t.Context(), []string{dir}); !errors.Is(err, ErrNone) {
		t.Errorf("not executable: got %v", err)
	}
	tool("flint", "flint, mft 4.34.1-10, built on Feb 24 2026, 11:09:28. Git SHA Hash: N/A", 0o755)
	s, err := Find(t.Context(), []string{dir})
	if err != nil || s.Name != "MFT" || s.Version != (Version{4, 34, 1}) || s.Version.String() != "4.34.1" {
		t.Errorf("got %+v, %v", s, err)
	}
	if _, err := s.Registers("0000:17:00.0"); !errors.Is(err, ErrNone) {
		t.Errorf("without mlxreg: got %v", err)
	}
	if _, err := s.Config(t.Context(), "0000:17:00.0"); !errors.Is(err, ErrNone) {
		t.Errorf("without mlxconfig: got %v", err)
	}
	tool("flint", "no version", 0o755)
	if _, err := Find(t.Context(), []string{dir}); err == nil {
		t.Error("no version: got no error")
	}
	if !(Version{4, 21, 0}).Before(FirstFWCTL) || (Version{4, 32, 0}).Before(FirstSetKey) || !(Version{3, 99, 0}).Before(Version{4, 0, 0}) {
		t.Error("order of versions")
	}
}

// TestRealTools runs those of the distribution on an adapter that is not there.
func TestRealTools(t *testing.T) {
	flint := testenv.Program(t, "mstflint")
	s, err := Find(t.Context(), []string{filepath.Dir(flint)})
	must(t, err)
	if s.Name != "mstflint" || s.Version.Before(Version{4, 21, 0}) {
		t.Errorf("got %s %v", s.Name, s.Version)
	}
	const nobody = "ffff:ff:1f.7"
	if _, err := s.Query(t.Context(), nobody); !errors.Is(err, ErrOpen) {
		t.Errorf("query: got %v", err)
	}
	r, err := s.Registers(nobody)
	must(t, err)
	if _, err := r.Access(t.Context(), register.IDMGIR, register.Read, make([]byte, 0xA0)); !errors.Is(err, ErrOpen) {
		t.Errorf("register: got %v", err)
	}
	if _, err := s.Config(t.Context(), nobody, "SM_DISABLE"); !errors.Is(err, ErrOpen) && !errors.Is(err, ErrTooOld) {
		t.Errorf("settings: got %v", err)
	}
}
