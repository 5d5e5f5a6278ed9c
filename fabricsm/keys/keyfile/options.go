package keyfile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"portcullis/fabricsm/keys"
)

// Options are those of opensm.conf that say which keys devices have now.
type Options struct {
	// MKey is m_key. Without PerPort all devices have it. With PerPort it is only a seed, from which no key can be derived
	// here, as the derivation of OpenSM and UFM is not public: the keys are in guid2mkey.
	MKey    keys.Key
	PerPort bool // m_key_per_port
	SMKey   keys.Key
	SAKey   keys.Key
	Level   uint8         // m_key_protection_level
	Lease   time.Duration // m_key_lease_period; 0: it never ends
}

// ParseOptions reads them from opensm.conf; all other options are left alone.
// Those that it reads have to make sense.
func ParseOptions(name string, data []byte) (Options, error) {
	var o Options
	lines := make(map[string]int)
	err := eachLine(name, data, func(number int, fields []string) error {
		set, ok := o.setters()[fields[0]]
		if !ok {
			return nil
		}
		if at, twice := lines[fields[0]]; twice {
			return fmt.Errorf("%s stands in line %d already", fields[0], at)
		}
		lines[fields[0]] = number
		if len(fields) < 2 {
			return fmt.Errorf("%s has no value", fields[0])
		}
		if err := set(fields[1]); err != nil {
			return fmt.Errorf("%s: %w", fields[0], err)
		}
		return nil
	})
	if err != nil {
		return Options{}, err
	}
	return o, nil
}

func (o *Options) setters() map[string]func(string) error {
	key := func(to *keys.Key) func(string) error {
		return func(s string) error {
			v, err := strconv.ParseUint(s, 0, 64) // as OpenSM reads it
			if err != nil {
				return errors.New("want a number, 0x and up to 16 hexadecimal digits")
			}
			*to = keys.New(v)
			return nil
		}
	}
	return map[string]func(string) error{
		"m_key": key(&o.MKey), "sm_key": key(&o.SMKey), "sa_key": key(&o.SAKey),
		"m_key_per_port": func(s string) error {
			o.PerPort = strings.EqualFold(s, "true")
			if !o.PerPort && !strings.EqualFold(s, "false") {
				return fmt.Errorf("%.20q: want TRUE or FALSE", s)
			}
			return nil
		},
		"m_key_protection_level": func(s string) error {
			v, err := strconv.ParseUint(s, 0, 8)
			o.Level = uint8(v)
			if err != nil || v > 3 {
				return fmt.Errorf("%.20q: want 0 to 3", s)
			}
			return nil
		},
		"m_key_lease_period": func(s string) error {
			v, err := strconv.ParseUint(s, 0, 16)
			o.Lease = time.Duration(v) * time.Second
			if err != nil {
				return fmt.Errorf("%.20q: want seconds, 0 to 65535", s)
			}
			return nil
		},
	}
}

// Single returns the one M_Key that OpenSM put on all devices, if it did so.
func (o *Options) Single() (keys.Key, bool) {
	all := keys.New(^uint64(0)) // asks OpenSM for a random seed
	return o.MKey, !o.PerPort && !o.MKey.IsZero() && o.MKey != all
}
