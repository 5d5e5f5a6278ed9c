package config

import (
	"fmt"
	"io"
	"os"

	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/sm"
)

// QoS says whether and how virtual lanes share links.
type QoS struct {
	Enabled bool   `yaml:"enabled"`
	Options string `yaml:"options"`
	Policy  string `yaml:"policy"`

	policy *qos.Policy // as it was read; nil: there is none
	told   []string    // what of it has no effect
}

func (*QoS) check(*checker, string) {}

func (s *QoS) flags(f *smFlags, key string) {
	f.truth("qos", key+".enabled", &s.Enabled)
	f.text("qos-options", key+".options", &s.Options)
	f.text("qos-policy", key+".policy", &s.Policy)
}

func (s *QoS) apply(to *sm.Config, path func(string) string) error {
	to.QoS.Enabled = s.Enabled
	if s.Options != "" {
		data, err := readQoS(path(s.Options))
		if err != nil {
			return err
		}
		if to.QoS, err = qos.ParseOptions(path(s.Options), data); err != nil {
			return err
		}
		to.QoS.Enabled = to.QoS.Enabled || s.Enabled
	}
	if s.Policy == "" {
		return nil
	}
	data, err := readQoS(path(s.Policy))
	if err != nil {
		return err
	}
	policy, err := qos.ParsePolicy(path(s.Policy), data)
	if err != nil {
		return err
	}
	s.policy, s.told = policy, policy.Notices
	return nil
}

// readQoS reads a file, and a byte more than is allowed of one that is too large.
func readQoS(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read quality of service: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, qos.MaxPolicySize+1))
	if err != nil {
		return nil, fmt.Errorf("read quality of service: %w", err)
	}
	return data, nil
}
