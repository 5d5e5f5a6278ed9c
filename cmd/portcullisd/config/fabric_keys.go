package config

import (
	"errors"
	"path/filepath"
	"strings"
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
)

// Keys says which management keys devices get. Keys that OpenSM or UFM
// have an option for are called as that.
type Keys struct {
	Root           string        `yaml:"root"`
	Mode           string        `yaml:"m_key_mode"`
	Places         string        `yaml:"places"`
	Import         string        `yaml:"import"`
	ImportOptions  string        `yaml:"import_options"`
	ImportKeep     bool          `yaml:"import_keep"`
	RotationPeriod time.Duration `yaml:"rotation_period"`
	RotationGrace  time.Duration `yaml:"rotation_grace"`
	RotationWindow int           `yaml:"rotation_window"`

	MKey           string        `yaml:"m_key_enable"`
	MKeyProtection uint8         `yaml:"m_key_protection_level"`
	MKeyLease      time.Duration `yaml:"m_key_lease_period"`

	CCKey         string        `yaml:"cc_key_enable"`
	CCLease       time.Duration `yaml:"cc_key_lease_period"`
	CCProtect     bool          `yaml:"cc_key_protect_bit"`
	CCOutstanding int           `yaml:"cc_max_outstanding_mads"`

	VSKey         string        `yaml:"vs_key_enable"`
	VSLease       time.Duration `yaml:"vs_key_lease_period"`
	VSProtect     bool          `yaml:"vs_key_ci_protect_bits"`
	VSOutstanding int           `yaml:"vs_max_outstanding_mads"`

	N2NKey         string        `yaml:"n2n_key_enable"`
	N2NLease       time.Duration `yaml:"n2n_key_lease_period"`
	N2NProtect     bool          `yaml:"n2n_key_protect_bit"`
	N2NOutstanding int           `yaml:"n2n_max_outstanding_mads"`
	N2NSwitches    string        `yaml:"n2n_switch_membership"`
}

// The values of a key's enable, as UFM's 0, 1 and 2. M_Keys may also be left to whether there is a root.
const (
	KeyAuto    = "auto"
	keyIgnore  = "ignore"
	keyDisable = "disable"
	keyEnable  = "enable"
)

func defaultKeys() Keys {
	r := keys.DefaultRotation()
	return Keys{
		Mode: string(keys.ModeDerived), RotationPeriod: r.Period, RotationGrace: r.Grace, RotationWindow: r.Window,
		Places: placesAuto, MKey: KeyAuto, MKeyProtection: 2,
		CCKey: keyIgnore, CCLease: time.Minute, CCProtect: true, CCOutstanding: 500,
		VSKey: keyIgnore, VSLease: time.Minute, VSProtect: true, VSOutstanding: 500,
		N2NKey: keyIgnore, N2NLease: time.Minute, N2NProtect: true, N2NOutstanding: 500, N2NSwitches: membershipLimited,
	}
}

// The membership of switches in the default partition.
const (
	membershipLimited = "limited"
	membershipFull    = "full"
)

// The source of the verified place of a device.
const (
	placesAuto     = "auto"
	placesDeclared = "declared"
	placesSeen     = "seen"
)

// credentialPrefix begins a root that systemd provides.
const credentialPrefix = "credential:"

func (c *Keys) check(k *checker, key string) {
	if name, ok := strings.CutPrefix(c.Root, credentialPrefix); ok && (name == "" || filepath.Base(name) != name) {
		k.wrong(key+".root", "%q: want %sNAME, with no slash in the name", c.Root, credentialPrefix)
	}
	k.oneOf(key+".m_key_mode", c.Mode, string(keys.ModeDerived), string(keys.ModeRandom))
	r := keys.RotationConfig{Period: c.RotationPeriod, Grace: c.RotationGrace, Window: c.RotationWindow}
	if err := r.Check(); err != nil {
		k.wrong(key+".rotation_period", "%v", err)
	}
	if c.ImportKeep && (c.Import == "" || c.ImportOptions != "") {
		k.wrong(key+".import_keep", "true: only keys of the files of import, one for each device, may stay; name the directory there, and no import_options")
	}
	k.oneOf(key+".places", c.Places, placesAuto, placesDeclared, placesSeen)
	if c.MKey != KeyAuto {
		k.enable(key+".m_key_enable", c.MKey, c.Root)
	}
	k.lease(key+".m_key_lease_period", c.MKeyLease)
	if c.MKeyProtection != 2 && c.MKeyProtection != 3 {
		k.wrong(key+".m_key_protection_level", "%d: at 0 and 1 any host may read the fabric, and at 0 the keys; want 2 or 3, which are the same", c.MKeyProtection)
	}
	k.classKey(key+".cc", "_key_protect_bit", c.CCKey, c.Root, c.CCLease, c.CCProtect, c.CCOutstanding)
	k.classKey(key+".vs", "_key_ci_protect_bits", c.VSKey, c.Root, c.VSLease, c.VSProtect, c.VSOutstanding)
	k.classKey(key+".n2n", "_key_protect_bit", c.N2NKey, c.Root, c.N2NLease, c.N2NProtect, c.N2NOutstanding)
	k.oneOf(key+".n2n_switch_membership", c.N2NSwitches, membershipLimited, membershipFull)
	if c.N2NSwitches == membershipFull && c.N2NKey != keyEnable {
		k.wrong(key+".n2n_switch_membership", "full: any host could send MADs to switches, and without n2n_key_enable: enable that serves nothing")
	}
}

// classKey checks the keys of a class of general management.
func (k *checker) classKey(class, bit, enable, root string, lease time.Duration, protect bool, outstanding int) {
	k.enable(class+"_key_enable", enable, root)
	k.lease(class+"_key_lease_period", lease)
	within(k, class+"_max_outstanding_mads", outstanding, 1, 500)
	if !protect {
		k.wrong(class+bit, "false: any host could read the key from the device; want true")
	}
}

// enable checks how a key is switched. A key itself is not named there.
func (k *checker) enable(key, v, root string) {
	switch v {
	case keyIgnore:
	case keyDisable, keyEnable:
		if root == "" {
			k.wrong(key, "%s: the keys have to be sealed; name a root, which portcullis keys root makes", v)
		}
	default:
		k.wrong(key, "want ignore, disable or enable; keys are drawn, and never written into a configuration")
	}
}

func (k *checker) lease(key string, v time.Duration) {
	k.between(key, v, 0, 65535*time.Second)
	if v%time.Second != 0 {
		k.wrong(key, "%v: want whole seconds, or 0 for one that never ends", v)
	}
}

func (c *Keys) flags(f *smFlags, key string) {
	f.text("keys-root", key+".root", &c.Root)
}

// ManagesMKeys reports whether M_Keys are given out or taken back.
func (c *Keys) ManagesMKeys() bool {
	return c.MKey == keyEnable || c.MKey == keyDisable || c.MKey == KeyAuto && c.Root != ""
}

// ManagesKeys reports whether keys of any kind are.
func (c *Keys) ManagesKeys() bool {
	classes := c.classKeys()
	return c.ManagesMKeys() || classes.On()
}

func (c *Keys) rotation() keys.RotationConfig {
	return keys.RotationConfig{Period: c.RotationPeriod, Grace: c.RotationGrace, Window: c.RotationWindow}
}

// classKeys returns what is configured of the keys of classes.
func (c *Keys) classKeys() sm.ClassKeysConfig {
	enables := map[string]sm.KeyEnable{keyIgnore: sm.KeyIgnore, keyDisable: sm.KeyDisable, keyEnable: sm.KeyEnabled}
	of := func(enable string, lease time.Duration, protect bool, window int) sm.ClassKeyConfig {
		k := sm.ClassKeyConfig{Enable: enables[enable], Window: window}
		if k.Enable != sm.KeyIgnore {
			k.Lease, k.Readable = uint16(lease/time.Second), !protect
		}
		return k
	}
	out := sm.ClassKeysConfig{
		CC:  of(c.CCKey, c.CCLease, c.CCProtect, c.CCOutstanding),
		VS:  of(c.VSKey, c.VSLease, c.VSProtect, c.VSOutstanding),
		N2N: of(c.N2NKey, c.N2NLease, c.N2NProtect, c.N2NOutstanding),

		FullSwitches: c.N2NSwitches == membershipFull,
	}
	if out.On() {
		out.Rotation = c.rotation()
	}
	return out
}

// apply checks that the root is there, and reads what is to be taken over. The
// keys themselves are opened with the store: see openKeys.
func (c *Keys) apply(to *sm.Config, path func(string) string) error {
	var errs []error
	if c.ManagesKeys() {
		if _, err := c.OpenRoot(path); err != nil {
			errs = append(errs, err)
		}
	}
	if c.ManagesMKeys() {
		imported, err := c.readImport(path)
		if err != nil {
			errs = append(errs, err)
		}
		to.MKey = mkeys.Config{
			Protection: c.MKeyProtection, Lease: uint16(c.MKeyLease / time.Second),
			Rotation: c.rotation(),
			Import:   imported, Release: c.MKey == keyDisable,
		}
	}
	to.ClassKeys = c.classKeys()
	imported, err := c.readClassImport(path)
	if err != nil {
		errs = append(errs, err)
	}
	to.ClassKeys.Import = imported
	if len(errs) == 0 && c.ManagesKeys() && (c.Import != "" || c.ImportOptions != "") && to.MKey.Import == nil && len(imported) == 0 {
		errs = append(errs, errors.New("fabric.keys.import, import_options: there is no key in them that is managed; leave them empty"))
	}
	return errors.Join(errs...)
}
