package config

import (
	"fmt"
	"io"
	"os"

	"portcullis/fabricsm/driver/guid2lid"
	"portcullis/fabricsm/sm"
)

// LIDs says which LIDs ports are to have.
type LIDs struct {
	GUID2LID string `yaml:"guid2lid"`

	told []string // what was left out of the file
}

func (*LIDs) check(*checker, string) {}

func (s *LIDs) flags(f *smFlags, key string) {
	f.text("guid2lid", key+".guid2lid", &s.GUID2LID)
}

func (s *LIDs) apply(to *sm.Config, path func(string) string) error {
	if s.GUID2LID == "" {
		return nil
	}
	entries, dropped, err := readGUID2LID(path(s.GUID2LID))
	if err != nil {
		return err
	}
	s.told = nil
	for _, d := range dropped {
		s.told = append(s.told, d.Error())
	}
	for _, e := range entries {
		to.LIDs.Preferred = append(to.LIDs.Preferred, sm.PreferredLID{GUID: e.GUID, LID: e.First, LMC: e.LMC()})
	}
	return nil
}

func readGUID2LID(file string) ([]guid2lid.Entry, []error, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read LIDs of OpenSM: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, guid2lid.MaxSize+1))
	if err != nil {
		return nil, nil, fmt.Errorf("read LIDs of OpenSM: %w", err)
	}
	return guid2lid.Parse(file, data)
}
