package profile

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"portcullis/fabricsm/strictyaml"
	"portcullis/firmware/nvconfig"
)

// siteFile is what a site wants otherwise. Unknown keys are refused.
type siteFile struct {
	Name     string `yaml:"name"`
	Version  uint32 `yaml:"version"`
	UUID     string `yaml:"uuid"` // marks cards with the profile: nv_config_profile
	Settings map[string]struct {
		Value  *string `yaml:"value"`
		Need   *Need   `yaml:"need"`
		Reason string  `yaml:"reason"`
	} `yaml:"settings"`
}

// maxSiteFile bounds the file of a site in bytes.
const maxSiteFile = 64 << 10

// Load reads the profile of a site in YAML: Default with the changes of the file, each with a reason. It reports every
// mistake.
func Load(data []byte) (*Profile, error) {
	var f siteFile
	if err := strictyaml.Load("profile", data, maxSiteFile, &f); err != nil {
		return nil, err
	}
	p := Default()
	p.Name, p.Version = f.Name, f.Version
	var errs []error
	if !validName(f.Name) {
		errs = append(errs, fmt.Errorf("name %q: want 1 to 64 letters, digits, dots and dashes", f.Name))
	}
	if f.Version == 0 {
		errs = append(errs, errors.New("version: want a number from 1 that grows with each change"))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Settings)) {
		s := f.Settings[name]
		if err := p.override(name, s.Value, s.Need, s.Reason); err != nil {
			errs = append(errs, fmt.Errorf("settings: %w", err))
		}
	}
	if f.UUID != "" {
		errs = append(errs, p.mark(f.UUID))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return p, nil
}

func validName(s string) bool {
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '.' && r != '-'
	}) < 0
}

// override takes one setting of the site's file.
func (p *Profile) override(name string, value *string, need *Need, reason string) error {
	i := slices.IndexFunc(p.Rules, func(r Rule) bool { return r.Parameter == name })
	if i < 0 {
		return fmt.Errorf("%q is not a setting of the list; portcullis nvconfig profile shows them", name)
	}
	r := p.Rules[i]
	ours := r.Need.String()
	if r.Want != "" {
		ours = r.Want + ", " + ours
	}
	switch {
	case strings.TrimSpace(reason) == "":
		return fmt.Errorf("%s: a reason is missing: say why this site changes it", name)
	case value == nil && need == nil:
		return fmt.Errorf("%s: value and need are missing", name)
	}
	if value != nil {
		want, err := r.canonical(*value)
		if err != nil {
			return err
		}
		r.Want = want
		if r.Need == Record {
			r.Need = WhereKnown
		}
	}
	if need != nil {
		r.Need = *need
	}
	switch {
	case r.Need == Record && value != nil:
		return fmt.Errorf("%s: a setting that is only recorded has no wanted value: leave value or need out", name)
	case r.Need == Record:
		r.Want = ""
	case r.Want == "":
		return fmt.Errorf("%s: a value is missing", name)
	}
	r.Reason, r.Site, r.Ours = reason, true, ours
	p.Rules[i] = r
	return nil
}

// canonical checks a wanted value against its field.
func (r Rule) canonical(value string) (string, error) {
	f := r.parameter()
	if f.Field.Kind == nvconfig.Text && value == DevicePSID {
		return value, nil
	}
	data := make([]byte, f.Item.Size)
	if err := f.Field.Set(data, value); err != nil {
		return "", err
	}
	return f.Field.Format(data)
}

// mark has cards say which profile they were given.
func (p *Profile) mark(uuid string) error {
	u, err := nvconfig.ParseUUID(uuid)
	if err != nil {
		return err
	}
	const reason = "the card says which profile it has"
	p.Rules = append(p.Rules,
		Rule{Parameter: "PROFILE_UUID", Want: u.String(), Need: WhereKnown, Reason: reason, Site: true},
		Rule{Parameter: "PROFILE_VERSION", Want: fmt.Sprint(p.Version), Need: WhereKnown, Reason: reason, Site: true})
	return nil
}
