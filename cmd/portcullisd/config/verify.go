package config

import (
	"time"

	"portcullis/fabricsm/readback"
)

// Verify says how the service examines the isolation of all tenants by itself.
type Verify struct {
	Every            time.Duration `yaml:"every"`
	Rate             int           `yaml:"rate"`
	AssumeMembership bool          `yaml:"assume_membership"`
}

func (k *checker) verify(v *Verify) {
	if v.Every != 0 {
		k.between("verify.every", v.Every, time.Minute, 30*24*time.Hour)
	}
	within(k, "verify.rate", v.Rate, 10, readback.DefaultRate)
}
