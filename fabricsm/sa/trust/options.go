package trust

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
)

// Options define which requesters subnet administration trusts, and with what. Their names in text are those of OpenSM and
// UFM where these have one.
type Options struct {
	// Model is sa_enhanced_trust_model: untrusted requests outside a short table are dropped. Options below that refer to
	// it have no effect without it.
	Model bool `json:"sa_enhanced_trust_model" yaml:"sa_enhanced_trust_model"`
	// AliasesUntrusted is sa_etm_allow_untrusted_guidinfo_rec: Set and Delete of a
	// GUIDInfoRecord may be untrusted. Part of Model.
	AliasesUntrusted bool `json:"sa_etm_allow_untrusted_guidinfo_rec" yaml:"sa_etm_allow_untrusted_guidinfo_rec"`
	// AliasesByAlias is sa_etm_allow_guidinfo_rec_by_vf: they may come from an alias
	// of a port, as virtual functions have. It binds trusted requests too. Part of
	// Model.
	AliasesByAlias bool `json:"sa_etm_allow_guidinfo_rec_by_vf" yaml:"sa_etm_allow_guidinfo_rec_by_vf"`
	// ProxyUntrusted is sa_etm_allow_untrusted_proxy_requests: an untrusted request
	// may act for another port. Part of Model.
	ProxyUntrusted bool `json:"sa_etm_allow_untrusted_proxy_requests" yaml:"sa_etm_allow_untrusted_proxy_requests"`

	// MaxGroups, MaxServices and MaxSubscriptions are sa_etm_max_num_mcgs, _srvcs and
	// _event_subs: how much a port, or an alias of one, may have registered before
	// untrusted requests for more are dropped. 0: no limit.
	MaxGroups        int `json:"sa_etm_max_num_mcgs" yaml:"sa_etm_max_num_mcgs"`
	MaxServices      int `json:"sa_etm_max_num_srvcs" yaml:"sa_etm_max_num_srvcs"`
	MaxSubscriptions int `json:"sa_etm_max_num_event_subs" yaml:"sa_etm_max_num_event_subs"`

	// Threshold is sa_rate_threshold: requests of a port, or an alias of one, in 100
	// ms. 0: no limit.
	Threshold int `json:"sa_rate_threshold" yaml:"sa_rate_threshold"`
	// CheckSGID is sa_check_sgid_spoofing: a source GID must be the port's, but for
	// routers.
	CheckSGID bool `json:"sa_check_sgid_spoofing" yaml:"sa_check_sgid_spoofing"`

	// ServiceKeyFile is service_name2key_map_file; see ParseServiceKeys. Empty: none.
	ServiceKeyFile string `json:"service_name2key_map_file,omitempty" yaml:"service_name2key_map_file,omitempty"`
	// ReservedNames, option sa_reserved_service_names, are beginnings of ServiceNames
	// that untrusted requests register only if the map has a key for the name. Case
	// makes no difference.
	ReservedNames []string `json:"sa_reserved_service_names" yaml:"sa_reserved_service_names"`

	// KeyPeriod, option sa_key_update in minutes, is how long an SA_Key is in force
	// before the next one. 0: for ever.
	KeyPeriod time.Duration `json:"sa_key_update" yaml:"sa_key_update"`
	// KeyGrace, option sa_key_grace in minutes, is how long the one before is taken
	// still.
	KeyGrace time.Duration `json:"sa_key_grace" yaml:"sa_key_grace"`
	// TrustedSources, option sa_trusted_guids, are the ports and aliases from which
	// the SA_Key is taken. Empty: all.
	TrustedSources []ib.GUID `json:"sa_trusted_guids,omitempty" yaml:"sa_trusted_guids,omitempty"`
}

// DefaultOptions are the stricter ones of those that are shipped and documented.
func DefaultOptions() Options {
	return Options{
		Model: true, MaxGroups: 128, MaxServices: 32, MaxSubscriptions: 32, CheckSGID: true,
		ReservedNames: []string{"SHArP."},
		KeyPeriod:     24 * time.Hour, KeyGrace: time.Hour,
	}
}

const (
	maxCount     = 1 << 20
	maxThreshold = 1_000_000
	maxSources   = 256
	maxReserved  = 256
	maxPeriod    = 366 * 24 * time.Hour
	null         = "(null)"
)

// Set sets one option by its name in OpenSM's configuration file, "(null)" for the default. It reports whether the name is
// that of such an option; others are left to the caller. An error names the option, the value and the expected values.
func (o *Options) Set(name, value string) (known bool, err error) {
	to, ok := o.option(name)
	if !ok {
		return false, nil
	}
	if value == null {
		d := DefaultOptions()
		from, _ := d.option(name)
		from.copyTo(to)
		return true, nil
	}
	if err := to.parse(value); err != nil {
		return true, fmt.Errorf("%s %q: %w", name, short(value), err)
	}
	return true, nil
}

// option points to the value of an option.
type option struct {
	flag    *bool
	number  *int
	most    int // of number
	text    *string
	minutes *time.Duration
	names   *[]string
	guids   *[]ib.GUID
}

func (o *Options) option(name string) (option, bool) {
	switch name {
	case "sa_enhanced_trust_model":
		return option{flag: &o.Model}, true
	case "sa_etm_allow_untrusted_guidinfo_rec":
		return option{flag: &o.AliasesUntrusted}, true
	case "sa_etm_allow_guidinfo_rec_by_vf":
		return option{flag: &o.AliasesByAlias}, true
	case "sa_etm_allow_untrusted_proxy_requests":
		return option{flag: &o.ProxyUntrusted}, true
	case "sa_etm_max_num_mcgs":
		return option{number: &o.MaxGroups, most: maxCount}, true
	case "sa_etm_max_num_srvcs":
		return option{number: &o.MaxServices, most: maxCount}, true
	case "sa_etm_max_num_event_subs":
		return option{number: &o.MaxSubscriptions, most: maxCount}, true
	case "sa_rate_threshold":
		return option{number: &o.Threshold, most: maxThreshold}, true
	case "sa_check_sgid_spoofing":
		return option{flag: &o.CheckSGID}, true
	case "service_name2key_map_file":
		return option{text: &o.ServiceKeyFile}, true
	case "sa_reserved_service_names":
		return option{names: &o.ReservedNames}, true
	case "sa_key_update":
		return option{minutes: &o.KeyPeriod}, true
	case "sa_key_grace":
		return option{minutes: &o.KeyGrace}, true
	case "sa_trusted_guids":
		return option{guids: &o.TrustedSources}, true
	default:
		return option{}, false
	}
}

func (p option) copyTo(to option) {
	switch {
	case p.flag != nil:
		*to.flag = *p.flag
	case p.number != nil:
		*to.number = *p.number
	case p.text != nil:
		*to.text = *p.text
	case p.minutes != nil:
		*to.minutes = *p.minutes
	case p.names != nil:
		*to.names = *p.names
	default:
		*to.guids = *p.guids
	}
}

func (p option) parse(value string) error {
	switch {
	case p.flag != nil:
		return parseFlag(p.flag, value)
	case p.number != nil:
		n, err := strconv.ParseUint(value, 0, 32)
		if err != nil || n > uint64(p.most) {
			return fmt.Errorf("want 0 to %d", p.most)
		}
		*p.number = int(n)
	case p.text != nil:
		*p.text = value
	case p.minutes != nil:
		n, err := strconv.ParseUint(value, 0, 32)
		if err != nil || time.Duration(n)*time.Minute > maxPeriod {
			return fmt.Errorf("want 0 to %d minutes", maxPeriod/time.Minute)
		}
		*p.minutes = time.Duration(n) * time.Minute
	case p.names != nil:
		*p.names = split(value)
	default:
		var guids []ib.GUID
		for _, item := range split(value) {
			g, err := ib.ParseGUID(item)
			if err != nil {
				return err
			}
			guids = append(guids, g)
		}
		*p.guids = guids
	}
	return nil
}

func parseFlag(to *bool, value string) error {
	switch strings.ToUpper(value) {
	case "TRUE":
		*to = true
	case "FALSE":
		*to = false
	default:
		return errors.New("want TRUE or FALSE")
	}
	return nil
}

func split(value string) (items []string) {
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// Check reports all values that make no sense, each with the name of its option.
func (o *Options) Check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, n := range []struct {
		name    string
		n, most int
	}{
		{"sa_etm_max_num_mcgs", o.MaxGroups, maxCount},
		{"sa_etm_max_num_srvcs", o.MaxServices, maxCount},
		{"sa_etm_max_num_event_subs", o.MaxSubscriptions, maxCount},
		{"sa_rate_threshold", o.Threshold, maxThreshold},
	} {
		if n.n < 0 || n.n > n.most {
			wrong("%s %d: want 0 to %d", n.name, n.n, n.most)
		}
	}
	if o.KeyPeriod != 0 && (o.KeyPeriod < time.Minute || o.KeyPeriod > maxPeriod) {
		wrong("sa_key_update %v: want 1m to a year, or 0 for one key for ever", o.KeyPeriod)
	}
	if o.KeyGrace < 0 || o.KeyPeriod != 0 && o.KeyGrace >= o.KeyPeriod {
		wrong("sa_key_grace %v: want less than sa_key_update, %v", o.KeyGrace, o.KeyPeriod)
	}
	if len(o.TrustedSources) > maxSources {
		wrong("sa_trusted_guids: %d GUIDs; want at most %d", len(o.TrustedSources), maxSources)
	}
	for _, g := range o.TrustedSources {
		if !g.Valid() {
			wrong("sa_trusted_guids %v: no port has this GUID", g)
		}
	}
	if len(o.ReservedNames) > maxReserved {
		wrong("sa_reserved_service_names: %d names; want at most %d", len(o.ReservedNames), maxReserved)
	}
	for _, name := range o.ReservedNames {
		if name == "" || len(name) > nameSize {
			wrong("sa_reserved_service_names %q: want 1 to %d bytes", short(name), nameSize)
		}
	}
	return errors.Join(errs...)
}

// short shortens a quotation from a file.
func short(s string) string {
	if len(s) > 60 {
		return s[:60] + "..."
	}
	return s
}
