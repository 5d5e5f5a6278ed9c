package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"portcullis/fabricsm/driver/guid2lid"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
)

// lidsConfig says which LIDs ports are to have.
type lidsConfig struct {
	GUID2LID string `yaml:"guid2lid"`

	told []string // what was left out of the file
}

func (*lidsConfig) check(*checker, string) {}

func (s *lidsConfig) flags(f *smFlags, key string) {
	f.text("guid2lid", key+".guid2lid", &s.GUID2LID)
}

func (s *lidsConfig) apply(to *sm.Config, path func(string) string) error {
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

// notices says what of the configuration is not done although it is no error.
func (f *fabricConfig) notices() []string {
	out := slices.Concat(f.LIDs.told, f.QoS.told)
	if f.QoS.policy != nil && !f.SA.Enabled {
		out = append(out, "fabric.qos.policy: has no effect: its levels are for paths that subnet administration gives, and fabric.sa.enabled is false")
	}
	if f.Health.Noisy.Action > health.Ignore {
		out = append(out, "fabric.health.noisy: who sends too many traps is reported, and nothing else is done: traps can be sent in the name of others")
	}
	return out
}
