package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"portcullis/agent"
	"portcullis/fabricsm/strictyaml"
)

// site is what a site decides, read from its folder.
type site struct {
	settings
	files map[string]string // name in the image to file here
}

// settings is image.yaml.
type settings struct {
	OnSuccess   action   `yaml:"on_success"`
	OnFailure   action   `yaml:"on_failure"`
	Consoles    []string `yaml:"consoles"`
	Cmdline     string   `yaml:"cmdline"`
	VendorTools *bool    `yaml:"vendor_tools"` // nil: where the kernel has no fwctl
	Modules     []string `yaml:"modules"`
	Version     string   `yaml:"version"`
}

// action is what the machine does after the agent.
type action string

const (
	powerOff action = "poweroff" // ends, for the next boot to come from elsewhere
	reboot   action = "reboot"   // boots what the firmware boots next
	stay     action = "stay"     // goes on running, without anything to log in to
)

func defaults() settings {
	return settings{OnSuccess: powerOff, OnFailure: stay, Consoles: []string{"tty0", "ttyS0,115200"}}
}

// Names in a site's folder.
const (
	imageFile    = "image.yaml"
	agentFile    = "agent.yaml"
	caFile       = "ca.pem"
	networkDir   = "network"
	firmwareDir  = "firmware"
	rootDir      = "root" // files that are taken as they are
	maxSiteFile  = 64 << 20
	maxSiteFiles = 1000
)

// readSite reads a site's folder, and refuses what it does not know.
func readSite(dir string) (*site, error) {
	s := &site{settings: defaults(), files: map[string]string{}}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("site's folder: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		switch name {
		case imageFile:
			err = s.readSettings(filepath.Join(dir, name))
		case agentFile, caFile:
			s.files["etc/portcullis/"+name] = filepath.Join(dir, name)
		case networkDir:
			err = s.folder(filepath.Join(dir, name), "etc/systemd/network", ".network", ".netdev", ".link")
		case firmwareDir:
			err = s.folder(filepath.Join(dir, name), "etc/portcullis/firmware")
		case rootDir:
			err = s.folder(filepath.Join(dir, name), "")
		default:
			err = fmt.Errorf("is not known: want %s, %s, %s, %s/, %s/ and %s/", agentFile, caFile, imageFile, networkDir, firmwareDir, rootDir)
		}
		if err != nil {
			return nil, fmt.Errorf("site's folder %s: %s: %w", dir, name, err)
		}
	}
	return s, errors.Join(s.check(), s.checkAgent(dir), checkCA(filepath.Join(dir, caFile)))
}

func (s *site) readSettings(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return strictyaml.LoadOptional("", b, maxSiteFile, &s.settings)
}

// folder takes a folder's files, those with one of the suffixes if there are any.
func (s *site) folder(dir, to string, suffixes ...string) error {
	return filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		switch {
		case err != nil:
			return err
		case info.Mode().Type() == fs.ModeSymlink && to == "":
		case !info.Mode().IsRegular() || info.Size() > maxSiteFile || len(s.files) >= maxSiteFiles:
			return fmt.Errorf("%s: want files of at most %d bytes, at most %d of them", rel, maxSiteFile, maxSiteFiles)
		case len(suffixes) > 0 && !slices.Contains(suffixes, filepath.Ext(rel)):
			return fmt.Errorf("%s: want files that end in %s", rel, strings.Join(suffixes, ", "))
		}
		s.files[path.Join(to, filepath.ToSlash(rel))] = file
		return nil
	})
}

// put adds the site's files to the tree. A file that is there already is an error.
func (s *site) put(t *tree) error {
	for _, name := range slices.Sorted(maps.Keys(s.files)) {
		if t.has(name) {
			return fmt.Errorf("site's folder: %s: the image has this file already", name)
		}
		file := s.files[name]
		info, err := os.Lstat(file)
		if err != nil {
			return err
		}
		if info.Mode().Type() == fs.ModeSymlink {
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			t.link(name, target)
			continue
		}
		perm := uint32(0o644)
		if info.Mode().Perm()&0o111 != 0 {
			perm = 0o755
		}
		t.put(name, node{perm: perm, from: file, size: info.Size()})
	}
	return nil
}

func (s *settings) check() error {
	var errs []error
	if !slices.Contains([]action{powerOff, reboot, stay}, s.OnSuccess) {
		errs = append(errs, fmt.Errorf("%s: on_success %q, want %s, %s or %s. kexec is not offered: the next kernel would run with a TPM that holds the measurements of this one",
			imageFile, s.OnSuccess, powerOff, reboot, stay))
	}
	if !slices.Contains([]action{powerOff, reboot, stay}, s.OnFailure) {
		errs = append(errs, fmt.Errorf("%s: on_failure %q, want %s, %s or %s", imageFile, s.OnFailure, powerOff, reboot, stay))
	}
	return errors.Join(errs...)
}

// checkAgent reads the agent's configuration as the agent will.
func (s *site) checkAgent(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, agentFile))
	if err != nil {
		return fmt.Errorf("site's folder: %w: copy packaging/etc/agent.yaml, and say where the service is", err)
	}
	c := agent.DefaultConfig()
	if err := c.ParseConfig(agentFile, b); err != nil {
		return err
	}
	if c.CA != "" {
		return fmt.Errorf("%s: ca %q: leave it empty, the image has %s where the unit looks for it", agentFile, c.CA, caFile)
	}
	c.CA = caFile
	if c.Host == "" {
		c.Host = "by-credential"
	}
	c.Host = strings.ReplaceAll(c.Host, "{serial}", "serial")
	if err := c.Check(); err != nil {
		return fmt.Errorf("%s: %w", agentFile, err)
	}
	return nil
}

func checkCA(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("site's folder: %w: copy the service's tls/ca.pem", err)
	}
	for n := 0; ; n++ {
		var block *pem.Block
		if block, b = pem.Decode(b); block == nil {
			if n == 0 {
				return fmt.Errorf("%s: no certificate in it", caFile)
			}
			return nil
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil || block.Type != "CERTIFICATE" {
			return fmt.Errorf("%s: %s %d: want certificates: %w", caFile, block.Type, n+1, err)
		}
	}
}

// cmdline is the kernel's command line.
func (s *settings) cmdline() string {
	var words []string
	for _, c := range s.Consoles {
		words = append(words, "console="+c)
	}
	words = append(words, "quiet", "panic=30", "systemd.show_status=yes")
	return strings.Join(append(words, strings.Fields(s.Cmdline)...), " ")
}

// after returns name and text of the unit that comes after the agent: a target that is reached where the machine stays on,
// or a service that ends it.
func after(name, description, order string, a action) (string, string) {
	words := map[action]string{powerOff: "and powers off", reboot: "and reboots", stay: "and stays on"}
	text := "[Unit]\nDescription=Portcullis: this host is " + fmt.Sprintf(description, words[a]) + "\n" + order
	if a == stay {
		return name + ".target", text
	}
	return name + ".service", text + "SuccessAction=" + string(a) + "\n\n[Service]\nType=oneshot\n"
}

// handover returns the unit that follows on the agent's success, and refused that on its failure.
func (s *settings) handover() (name, text string) {
	return after("portcullis-handover", "handed over, %s", "Requires=portcullis-agent.service\nAfter=portcullis-agent.service\n", s.OnSuccess)
}

func (s *settings) refused() (name, text string) {
	return after("portcullis-refused", "not handed over, %s: the agent's lines say why", "", s.OnFailure)
}
