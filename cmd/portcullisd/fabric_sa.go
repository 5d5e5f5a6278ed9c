package main

import (
	"errors"
	"fmt"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
)

// saConfig says how hosts are answered as subnet administration.
type saConfig struct {
	Enabled bool   `yaml:"enabled"`
	KeyFile string `yaml:"key_file"`
}

func defaultSA() saConfig { return saConfig{Enabled: true} }

func (*saConfig) check(*checker, string) {}

func (s *saConfig) flags(f *smFlags, key string) {
	f.text("sa-key-file", key+".key_file", &s.KeyFile)
}

func (*saConfig) apply(*sm.Config, func(string) string) error { return nil }

// saKey reads the SA_Key, the zero one if there is none.
func (s *saConfig) saKey(path func(string) string) (ib.SAKey, error) {
	if s.KeyFile == "" {
		return ib.SAKey{}, nil
	}
	file := path(s.KeyFile)
	key, err := loadSMKey(file)
	if err := errors.Join(private(file), err); err != nil {
		return ib.SAKey{}, fmt.Errorf("SA_Key: %w", err)
	}
	if key.Reveal() <= 1 {
		return ib.SAKey{}, fmt.Errorf("SA_Key in %s: 0 means no key, and 1 is what everybody tries first; draw one: openssl rand -hex 8", file)
	}
	return ib.NewSAKey(key.Reveal()), nil
}

// agent makes what answers, nil if nobody is to be answered.
func (s *saConfig) agent(core *sm.Config, path func(string) string) (*sa.Agent, error) {
	if !s.Enabled {
		return nil, nil
	}
	key, err := s.saKey(path)
	if err != nil {
		return nil, err
	}
	cfg := sa.DefaultConfig()
	cfg.Subnet = core.Prefix
	cfg.Key = key
	return sa.New(cfg)
}
