package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// debian gets packages from the index that apt has on this machine, keeps them in a cache, and unpacks them there. It
// installs nothing.
type debian struct {
	cache string
	level int // of the initrd's compression
	say   func(string, ...any)
}

// pkg is one package that was downloaded.
type pkg struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"`
	dir     string // where it is unpacked
}

// closure returns name and version of the packages that are needed to install some, as apt decides on an empty system.
func (d *debian) closure(names []string) (map[string]string, error) {
	args := append([]string{"-s", "-o", "Dir::State::status=/dev/null", "-o", "APT::Install-Recommends=false", "-o", "Debug::NoLocking=true", "install"}, names...)
	out, err := d.run("apt-get", args...)
	if err != nil {
		return nil, fmt.Errorf("%w: run \"apt-get update\", and look whether the sources have these packages", err)
	}
	found := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^Inst (\S+) \((\S+) `).FindAllStringSubmatch(out, -1) {
		found[m[1]] = m[2]
	}
	return found, nil
}

// digests returns the SHA-256 digests that the index has of packages, by NAME=VERSION.
func (d *debian) digests(versions map[string]string) (map[string]string, error) {
	args := []string{"show"}
	for name, version := range versions {
		args = append(args, name+"="+version)
	}
	shown, err := d.run("apt-cache", args...)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	field := regexp.MustCompile(`(?m)^(Package|Version|SHA256): (\S+)$`)
	for _, stanza := range strings.Split(shown, "\n\n") {
		f := map[string]string{}
		for _, m := range field.FindAllStringSubmatch(stanza, -1) {
			f[m[1]] = m[2]
		}
		if len(f["SHA256"]) == sha256.Size*2 {
			out[f["Package"]+"="+f["Version"]] = f["SHA256"]
		}
	}
	return out, nil
}

// get downloads and unpacks one version of a package, whose digest the index has.
func (d *debian) get(name, version, sum string) (pkg, error) {
	p := pkg{Name: name, Version: version, SHA256: sum}
	if sum == "" {
		return p, fmt.Errorf("package %s %s: the index has no SHA-256 of it", name, version)
	}
	file := filepath.Join(d.cache, sum+".deb")
	if digest(file) != sum {
		if err := d.download(name+"="+version, file, sum); err != nil {
			return p, err
		}
	}
	var err error
	p.dir, err = d.unpack(file, sum)
	return p, err
}

func (d *debian) download(what, to, want string) error {
	work, err := os.MkdirTemp(d.cache, "download-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	cmd := exec.Command("apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", what)
	cmd.Dir = work
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("download %s: %w: %s", what, err, out)
	}
	files, err := filepath.Glob(filepath.Join(work, "*.deb"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("download %s: %d files, want one", what, len(files))
	}
	if got := digest(files[0]); got != want {
		return fmt.Errorf("download %s: SHA-256 is %s, the index says %s", what, got, want)
	}
	d.say("downloaded %s", what)
	return os.Rename(files[0], to)
}

// unpack unpacks a package below the cache, under its digest.
func (d *debian) unpack(file, sum string) (string, error) {
	dir := filepath.Join(d.cache, sum)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return "", err
	}
	if _, err := d.run("dpkg-deb", "-x", file, part); err != nil {
		return "", err
	}
	return dir, os.Rename(part, dir)
}

// local takes a package that is a file here, such as our own.
func (d *debian) local(file string) (pkg, error) {
	shown, err := d.run("dpkg-deb", "-W", "--showformat=${Package} ${Version}", file)
	if err != nil {
		return pkg{}, err
	}
	name, version, _ := strings.Cut(shown, " ")
	p := pkg{Name: name, Version: version, SHA256: digest(file)}
	p.dir, err = d.unpack(file, p.SHA256)
	return p, err
}

// index names the indexes that apt has, with their digests.
func (d *debian) index() ([]string, error) {
	out, err := d.run("apt-get", "indextargets", "--format", "$(FILENAME) $(URI) $(IDENTIFIER)")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(out) {
		f := strings.Fields(line)
		if len(f) == 3 && f[2] == "Packages" {
			if sum := indexDigest(f[0]); sum != "" {
				found = append(found, f[1]+" "+sum)
			}
		}
	}
	slices.Sort(found)
	return found, nil
}

// indexDigest returns the digest of an index, which apt may keep compressed.
func indexDigest(file string) string {
	names, err := filepath.Glob(file + "*")
	if err != nil || len(names) == 0 {
		return ""
	}
	return filepath.Ext(names[0]) + ":" + digest(names[0])
}

func (d *debian) run(name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.Output()
	if err != nil {
		said := ""
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			said = ": " + strings.TrimSpace(string(exit.Stderr))
		}
		return "", fmt.Errorf("%s %s: %w%s", name, strings.Join(args, " "), err, said)
	}
	return string(out), nil
}

// digest returns the SHA-256 digest of a file, or "" if it cannot be read.
func digest(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}
