package sm

import (
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/keys"
)

// TestClassKeysCheck checks that a configuration that makes no sense is found before anything is sent.
func TestClassKeysCheck(t *testing.T) {
	on := ClassKeyConfig{Enable: KeyEnabled}
	for _, tt := range []struct {
		name string
		cfg  ClassKeysConfig
		want string // empty: it is right
	}{
		{"nothing", ClassKeysConfig{}, ""},
		{"enabled", ClassKeysConfig{Source: keys.Random{}, CC: on, VS: on, N2N: on}, ""},
		{"disabled without a source", ClassKeysConfig{VS: ClassKeyConfig{Enable: KeyDisable}}, ""},
		{"enabled without a source", ClassKeysConfig{VS: on}, "VS_Key is to be given out, and there is no source of keys"},
		{"another mode", ClassKeysConfig{CC: ClassKeyConfig{Enable: 3}}, "CC_Key enable 3"},
		{"a large window", ClassKeysConfig{N2N: ClassKeyConfig{Window: 501}}, "N2N_Key outstanding requests 501: want 1 to 500"},
		{"switches that talk", ClassKeysConfig{Source: keys.Random{}, N2N: on, FullSwitches: true}, ""},
		{"switches that talk without keys", ClassKeysConfig{Source: keys.Random{}, CC: on, FullSwitches: true}, "get no N2N_Keys"},
		{"a short period", ClassKeysConfig{Rotation: keys.RotationConfig{Period: time.Second}}, "rotation period 1s"},
	} {
		err := (&Config{ClassKeys: tt.cfg}).Check()
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}
