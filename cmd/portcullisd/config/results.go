package config

import (
	"fmt"
	"strings"
	"time"

	"portcullis/api/results"
	"portcullis/cmd/internal/version"
	"portcullis/cmd/portcullisd/command"
)

// Results says how attestation results are signed.
type Results struct {
	Root    string        `yaml:"root"`
	Issuer  string        `yaml:"issuer"`
	KeyLife time.Duration `yaml:"key_life"`
}

func (k *checker) results(r *Results) {
	if r.KeyLife != 0 {
		k.between("results.key_life", r.KeyLife, time.Hour, 10*365*24*time.Hour)
	}
	if (r.Root == "") != (r.Issuer == "") {
		k.wrong("results.issuer", "%q with root %q: root and issuer belong together: name both, or none", r.Issuer, r.Root)
	}
	if len(r.Issuer) > 256 || strings.ContainsFunc(r.Issuer, func(c rune) bool { return c <= ' ' || c > '~' }) {
		k.wrong("results.issuer", "%.64q: want at most 256 printable ASCII characters without blanks, such as https://HOST:PORT", r.Issuer)
	}
}

// loadResults reads what the section names. Without a root nothing is signed.
func loadResults(c *Config) (*results.Options, error) {
	r := &c.Results
	if r.Root == "" {
		return nil, nil
	}
	root, err := readRoot(r.Root, c.Path)
	if err != nil {
		return nil, command.Hint(fmt.Errorf("results.root: %w", err),
			"bring it back from where it is kept; if it is lost, make another (portcullis keys root FILE), and revoke the keys before (portcullis result rotate --drop)")
	}
	return &results.Options{Root: root, Issuer: r.Issuer, Build: version.Short(), Period: r.KeyLife}, nil
}
