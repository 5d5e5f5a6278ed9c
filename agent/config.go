package agent

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"portcullis/agent/hca"
	"portcullis/agent/hca/fwcatalog"
	"portcullis/agent/hca/mst"
	"portcullis/attest"
	"portcullis/attest/tpm"
	"portcullis/fabricsm/strictyaml"
)

// Config is what an agent needs to know. Its YAML form is the configuration
// file.
type Config struct {
	Service        string        `yaml:"service"`         // https://HOST[:PORT]
	CA             string        `yaml:"ca"`              // PEM file; the only CA trusted
	Host           string        `yaml:"host"`            // id of this host in inventory
	TPM            string        `yaml:"tpm"`             // character device, or unix:SOCKET
	Sysfs          string        `yaml:"sysfs"`           // mount point of sysfs
	Procfs         string        `yaml:"procfs"`          // mount point of procfs
	EventLog       string        `yaml:"event_log"`       // firmware's event log; empty: the credential eventlog, else below sysfs
	FWCTL          string        `yaml:"fwctl"`           // device nodes of fwctl, or unix:DIR
	VendorTools    bool          `yaml:"vendor_tools"`    // run mstflint for adapters without fwctl
	Firmware       string        `yaml:"firmware"`        // folder of keys, boards and images; "" none
	Image          string        `yaml:"image"`           // identity of the booted image; empty: from os_release
	OSRelease      string        `yaml:"os_release"`      // file that names the image
	LockAdapters   bool          `yaml:"lock_adapters"`   // lock adapters as the service orders
	Certificate    bool          `yaml:"certificate"`     // have a key of the TPM certified, to read this host's status with
	StateDir       string        `yaml:"state_dir"`       // what was measured, last verdict
	Timeout        time.Duration `yaml:"timeout"`         // from start to admission
	AgentPCR       int           `yaml:"agent_pcr"`       // register for statements, as in the service's policy
	ChannelBinding string        `yaml:"channel_binding"` // required, or off behind a TLS proxy
}

// Channel binding settings.
const (
	BindingRequired = "required"
	BindingOff      = "off"
)

// DefaultConfig has every default; Service, CA and Host have none.
func DefaultConfig() Config {
	return Config{
		TPM: tpm.DefaultDevice, OSRelease: "/etc/os-release", Sysfs: hca.DefaultSysfs, Procfs: hca.DefaultProcfs,
		FWCTL: hca.DefaultFWCTL, VendorTools: true, LockAdapters: true, Certificate: true,
		StateDir: "/var/lib/portcullis-agent", Timeout: 15 * time.Minute,
		AgentPCR: attest.DefaultAgentPCR, ChannelBinding: BindingRequired,
	}
}

// Ways are how adapters are reached.
func (c *Config) Ways() hca.Ways {
	w := hca.Ways{Sysfs: c.Sysfs, FWCTL: c.FWCTL, Drivers: hca.DialDrivers}
	if c.VendorTools {
		w.Tools = mst.Folders()
	}
	return w
}

// Site is what the site knows of firmware; nil without a folder.
func (c *Config) Site() (hca.Site, error) {
	if c.Firmware == "" {
		return nil, nil
	}
	l, err := fwcatalog.Open(c.Firmware)
	if err != nil {
		return nil, fail(ClassUsage, "the manual page portcullis-agent(8) says what the folder must contain", err)
	}
	return l, nil
}

// maxConfig bounds a configuration file in bytes.
const maxConfig = 1 << 20

// ParseConfig reads a configuration file over the values already in c. Unknown
// keys are refused, with their line.
func (c *Config) ParseConfig(name string, data []byte) error {
	if err := strictyaml.LoadOptional("configuration "+name, data, maxConfig, c); err != nil {
		return fail(ClassUsage, "the manual page portcullis-agent(8) lists the keys", err)
	}
	return nil
}

// CheckHost reports every setting that collecting a statement needs and that
// is missing or wrong.
func (c *Config) CheckHost() error {
	var errs []error
	if c.Host == "" {
		errs = append(errs, errors.New("host is not set; it is this host's id in inventory"))
	} else if strings.Contains(c.Host, serialWord) {
		errs = append(errs, fmt.Errorf("host %q: the machine shows no serial number, or the unit does not hand over the credential serial", c.Host))
	} else if err := attest.CheckHostID(c.Host); err != nil {
		errs = append(errs, err)
	}
	for _, s := range []struct{ name, value string }{{"tpm", c.TPM}, {"sysfs", c.Sysfs}, {"procfs", c.Procfs}} {
		if s.value == "" {
			errs = append(errs, fmt.Errorf("%s is empty", s.name))
		}
	}
	if c.AgentPCR < 8 || c.AgentPCR > 15 || c.AgentPCR == 10 {
		errs = append(errs, fmt.Errorf("agent_pcr %d, want 8 to 15 and not 10", c.AgentPCR))
	}
	return usage(errs)
}

// Check reports every setting that a provisioning run needs and that is
// missing or wrong.
func (c *Config) Check() error {
	var errs []error
	if c.Service == "" {
		errs = append(errs, errors.New("service is not set; want https://HOST[:PORT]"))
	}
	if c.CA == "" {
		errs = append(errs, errors.New("ca is not set; want the PEM file of the service's CA"))
	}
	if c.StateDir == "" {
		errs = append(errs, errors.New("state_dir is empty"))
	}
	if c.Timeout <= 0 {
		errs = append(errs, fmt.Errorf("timeout %s, want more than 0", c.Timeout))
	}
	if c.ChannelBinding != BindingRequired && c.ChannelBinding != BindingOff {
		errs = append(errs, fmt.Errorf("channel_binding %q, want %s or %s", c.ChannelBinding, BindingRequired, BindingOff))
	}
	if err, ok := errors.AsType[*Error](c.CheckHost()); ok {
		errs = append(errs, err.Err)
	}
	return usage(errs)
}

func usage(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return fail(ClassUsage, "this command's --help names the options", errors.Join(errs...))
}
