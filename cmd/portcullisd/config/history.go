package config

import "time"

// History says for how long it is recorded how the fabric looked.
type History struct {
	Keep time.Duration `yaml:"keep"` // 0: nothing is recorded
	Size int           `yaml:"size"` // MiB
}

func defaultHistory() History { return History{Keep: 24 * time.Hour, Size: 64} }

func (k *checker) history(h *History) {
	if h.Keep != 0 {
		k.between("history.keep", h.Keep, time.Hour, 7*24*time.Hour)
	}
	within(k, "history.size", h.Size, 8, 4096)
}
