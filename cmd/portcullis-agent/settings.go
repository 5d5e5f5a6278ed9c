package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"portcullis/agent"
	"portcullis/cmd/internal/input"
)

// standardConfig is read where no other configuration is named, if it is there.
const standardConfig = "/etc/portcullis/agent.yaml"

const configHelp = "configuration file (YAML); flags override it (default " + standardConfig + ", if it is there)"

// settings are flags over a configuration file over defaults.
type settings struct {
	file     string
	standard string // in place of file
	flags    agent.Config
}

// hostFlags are those that collecting a statement needs.
func (s *settings) hostFlags(f *pflag.FlagSet) {
	f.StringVar(&s.file, "config", "", configHelp)
	f.StringVar(&s.flags.Host, "host", "", "id of this host in inventory")
	s.tpmFlag(f)
	f.StringVar(&s.flags.EventLog, "event-log", s.flags.EventLog, "the firmware's event log (default below sysfs, or the credential eventlog)")
	f.StringVar(&s.flags.Procfs, "procfs", s.flags.Procfs, "where procfs is mounted")
	s.adapterFlags(f)
}

// adapterFlags are those that reading adapters needs.
func (s *settings) adapterFlags(f *pflag.FlagSet) {
	f.StringVar(&s.flags.Sysfs, "sysfs", s.flags.Sysfs, "where sysfs is mounted")
	f.StringVar(&s.flags.FWCTL, "fwctl", s.flags.FWCTL, "device nodes of fwctl, or unix:DIR for simulated adapters")
	f.BoolVar(&s.flags.VendorTools, "vendor-tools", s.flags.VendorTools, "run mstflint for adapters without fwctl")
	f.StringVar(&s.flags.Firmware, "firmware", "", "folder with pins.yaml, policy.yaml and images of the site")
}

func (s *settings) stateFlag(f *pflag.FlagSet) {
	f.StringVar(&s.flags.StateDir, "state-dir", s.flags.StateDir, "folder for measurements and the last outcome")
}

func (s *settings) serviceFlags(f *pflag.FlagSet) {
	s.askFlags(f)
	f.DurationVar(&s.flags.Timeout, "timeout", s.flags.Timeout, "time limit of a run, from start to admission")
	f.IntVar(&s.flags.AgentPCR, "agent-pcr", s.flags.AgentPCR, "PCR for statements, 8 to 15 and not 10")
	f.BoolVar(&s.flags.Certificate, "certificate", s.flags.Certificate, "have a key of the TPM certified, which reads this host's status")
	f.BoolVar(&s.flags.LockAdapters, "lock-adapters", s.flags.LockAdapters, "lock adapters as the service orders")
	f.StringVar(&s.flags.ChannelBinding, "channel-binding", s.flags.ChannelBinding, "required, or off if a proxy ends TLS")
}

// askFlags are those that asking the service needs.
func (s *settings) askFlags(f *pflag.FlagSet) {
	f.StringVar(&s.flags.Service, "service", "", "URL of the service, https://HOST[:PORT]")
	f.StringVar(&s.flags.CA, "ca", "", "PEM file of the only CA trusted for the service")
}

// tpmFlag names the TPM.
func (s *settings) tpmFlag(f *pflag.FlagSet) {
	f.StringVar(&s.flags.TPM, "tpm", s.flags.TPM, "TPM: a character device, or unix:SOCKET")
}

// config joins defaults, file and the flags that were given.
func (s *settings) config(cmd *cobra.Command) (agent.Config, error) {
	c := agent.DefaultConfig()
	if s.file == "" && !cmd.Flags().Changed("config") && there(s.standard) {
		s.file = s.standard
	}
	if s.file != "" {
		data, err := input.ReadFile(s.file, input.Small)
		if errors.Is(err, fs.ErrPermission) {
			return c, &agent.Error{Class: agent.ClassUsage, Err: fmt.Errorf("configuration: %w", err), Hint: "run as root, or name a configuration that can be read with --config"}
		}
		if err != nil {
			return c, misuse(cmd, "configuration: %w", err)
		}
		if err := c.ParseConfig(s.file, data); err != nil {
			return c, err
		}
	}
	for name, set := range map[string]func(){
		"host":            func() { c.Host = s.flags.Host },
		"tpm":             func() { c.TPM = s.flags.TPM },
		"sysfs":           func() { c.Sysfs = s.flags.Sysfs },
		"event-log":       func() { c.EventLog = s.flags.EventLog },
		"procfs":          func() { c.Procfs = s.flags.Procfs },
		"fwctl":           func() { c.FWCTL = s.flags.FWCTL },
		"vendor-tools":    func() { c.VendorTools = s.flags.VendorTools },
		"certificate":     func() { c.Certificate = s.flags.Certificate },
		"lock-adapters":   func() { c.LockAdapters = s.flags.LockAdapters },
		"firmware":        func() { c.Firmware = s.flags.Firmware },
		"state-dir":       func() { c.StateDir = s.flags.StateDir },
		"service":         func() { c.Service = s.flags.Service },
		"ca":              func() { c.CA = s.flags.CA },
		"timeout":         func() { c.Timeout = s.flags.Timeout },
		"agent-pcr":       func() { c.AgentPCR = s.flags.AgentPCR },
		"channel-binding": func() { c.ChannelBinding = s.flags.ChannelBinding },
	} {
		if cmd.Flags().Changed(name) {
			set()
		}
	}
	c.UseCredentials()
	return c, nil
}

// there reports whether there is such a file, also one that cannot be read.
func there(file string) bool {
	_, err := os.Stat(file)
	return err == nil || errors.Is(err, fs.ErrPermission)
}
