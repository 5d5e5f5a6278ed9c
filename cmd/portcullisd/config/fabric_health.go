package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/health"
)

// Health says when a port or switch counts as unhealthy, and what follows.
type Health struct {
	Flapping       HealthRule    `yaml:"flapping"`
	Unresponsive   HealthRule    `yaml:"unresponsive"`
	Noisy          HealthRule    `yaml:"noisy"`
	SetErrors      HealthRule    `yaml:"set_errors"`
	IllegalAnswers HealthRule    `yaml:"illegal_answers"`
	Rebooting      HealthRule    `yaml:"rebooting"`
	Guessing       HealthRule    `yaml:"guessing"`
	Marked         health.Action `yaml:"marked"`
	Recover        time.Duration `yaml:"recover"`
	RecoverMax     time.Duration `yaml:"recover_max"`
}

// HealthRule is "COUNT in TIME ACTION", or "ignore".
type HealthRule health.Rule

func (r HealthRule) String() string {
	if r.Action == health.Ignore {
		return health.Ignore.String()
	}
	return fmt.Sprintf("%d in %v %v", r.Count, r.Window, r.Action)
}

// MarshalText returns the form that UnmarshalText reads.
func (r HealthRule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads a rule.
func (r *HealthRule) UnmarshalText(b []byte) error {
	words := strings.Fields(string(b))
	if len(words) == 1 && words[0] == health.Ignore.String() {
		*r = HealthRule{Count: 1, Window: time.Second, Action: health.Ignore}
		return nil
	}
	if len(words) == 4 && words[1] == "in" {
		count, countErr := strconv.Atoi(words[0])
		window, windowErr := time.ParseDuration(words[2])
		var action health.Action
		if err := action.UnmarshalText([]byte(words[3])); err != nil {
			return err
		}
		if countErr == nil && windowErr == nil && count > 0 && window > 0 {
			*r = HealthRule{Count: count, Window: window, Action: action}
			return nil
		}
	}
	return fmt.Errorf(`health rule %q: want COUNT in TIME ACTION, for example "12 in 1m isolate", or ignore`, b)
}

func defaultHealth() Health {
	d := sm.DefaultConfig().Health
	return Health{
		Flapping: HealthRule(d.Flapping), Unresponsive: HealthRule(d.Unresponsive), Noisy: HealthRule(d.Noisy),
		SetErrors: HealthRule(d.SetErrors), IllegalAnswers: HealthRule(d.IllegalAnswer), Rebooting: HealthRule(d.Rebooting),
		Guessing: HealthRule(d.Guessing),
		Marked:   d.Marked, Recover: d.Recover, RecoverMax: d.RecoverMax,
	}
}

func (h *Health) check(k *checker, key string) {
	for _, r := range []struct {
		name string
		rule HealthRule
	}{
		{"flapping", h.Flapping},
		{"unresponsive", h.Unresponsive},
		{"noisy", h.Noisy},
		{"set_errors", h.SetErrors},
		{"illegal_answers", h.IllegalAnswers},
		{"rebooting", h.Rebooting},
		{"guessing", h.Guessing},
	} {
		within(k, key+"."+r.name, r.rule.Count, 1, 1_000_000)
		k.between(key+"."+r.name, r.rule.Window, time.Second, 24*time.Hour)
	}
	if h.Marked < health.NoDiscover {
		k.wrong(key+".marked", "%v: want no-discover, isolate or disable", h.Marked)
	}
	k.between(key+".recover", h.Recover, time.Second, 24*time.Hour)
	k.between(key+".recover_max", h.RecoverMax, h.Recover, 30*24*time.Hour)
}

func (h *Health) flags(*smFlags, string) {}

func (h *Health) apply(to *sm.Config, _ func(string) string) error {
	to.Health = health.Config{
		Flapping: health.Rule(h.Flapping), Unresponsive: health.Rule(h.Unresponsive), Noisy: health.Rule(h.Noisy),
		SetErrors: health.Rule(h.SetErrors), IllegalAnswer: health.Rule(h.IllegalAnswers), Rebooting: health.Rule(h.Rebooting),
		Guessing: health.Rule(h.Guessing),
		Marked:   h.Marked, Recover: h.Recover, RecoverMax: h.RecoverMax,
	}
	return nil
}
