package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"portcullis/attest/eventlog"
	"portcullis/attest/reference/predict"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	site, agent, kernel, version, lock, out, cache, key, cert string
	level                                                     int
}

func parseFlags(args []string, stderr io.Writer) (*options, error) {
	var o options
	f := flag.NewFlagSet("image", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.site, "site", "", "the site's folder: agent.yaml, ca.pem, image.yaml, network/, firmware/")
	f.StringVar(&o.agent, "agent", "", "deb package of portcullis-agent")
	f.StringVar(&o.kernel, "kernel", "linux-image-amd64", "Debian's package of the kernel")
	f.StringVar(&o.version, "version", "", "version of the image, unless image.yaml has one")
	f.StringVar(&o.lock, "lock", "", "manifest of an earlier image, whose packages are wanted")
	f.StringVar(&o.out, "out", "dist/image/portcullis.efi", "the image; manifest and registers are written beside it")
	f.StringVar(&o.cache, "cache", "", "where packages are kept (default in the user's cache)")
	f.IntVar(&o.level, "level", 19, "of the initrd's compression by zstd, 1 to 19")
	f.StringVar(&o.key, "sign-key", "", "sign with this key: a PEM file, or a pkcs11: URI")
	f.StringVar(&o.cert, "sign-cert", "", "certificate of the key, PEM")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case f.NArg() > 0:
		return nil, fmt.Errorf("argument %q: want flags alone", f.Arg(0))
	case o.site == "" || o.agent == "":
		return nil, errors.New("-site and -agent must be given: \"make image CONFIG=folder\" does so, docs/operate/image.md says what is in the folder")
	case o.level < 1 || o.level > 19:
		return nil, fmt.Errorf("-level %d, want 1 to 19", o.level)
	case (o.key == "") != (o.cert == ""):
		return nil, errors.New("-sign-key and -sign-cert go together")
	}
	return &o, nil
}

func run(args []string, stderr io.Writer) error {
	o, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	say := func(format string, args ...any) { fmt.Fprintf(stderr, "image: "+format+"\n", args...) }
	if o.cache == "" {
		base, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		o.cache = filepath.Join(base, "portcullis-image")
	}
	for _, dir := range []string{o.cache, filepath.Dir(o.out)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	in := order{agent: o.agent, kernel: o.kernel, version: o.version}
	if in.site, err = readSite(o.site); err != nil {
		return err
	}
	if in.site.Version != "" {
		in.version = in.site.Version
	}
	if o.lock != "" {
		if in.lock, err = readManifest(o.lock); err != nil {
			return err
		}
	}
	b, err := (&debian{cache: o.cache, level: o.level, say: say}).build(in)
	if err != nil {
		return err
	}
	if err := o.write(b); err != nil {
		return err
	}
	m := &b.manifest
	say("%s: %.1f MB, of which kernel %s and initrd %.1f MB (%d files, %.1f MB unpacked)", o.out, mega(m.Size), m.Kernel, mega(m.Initrd.Compressed), m.Initrd.Files, mega(int(m.Initrd.Bytes)))
	for _, text := range m.Missing {
		say("missing: %s", text)
	}
	return nil
}

func mega(n int) float64 { return float64(n) / 1e6 }

// write writes the image, its manifest and the registers that are known of it, and signs it.
func (o *options) write(b *built) error {
	stem := strings.TrimSuffix(o.out, ".efi")
	i, err := predict.Read(b.image)
	if err != nil {
		return err
	}
	registers, err := i.Registers(predict.Platform{}, nil)
	if err != nil {
		return err
	}
	values := map[string][]eventlog.Digest{}
	for k := range registers {
		r := &registers[k]
		values[fmt.Sprint(r.PCR)] = r.Values
		if len(r.Values) == 0 {
			values[fmt.Sprint(r.PCR)] = []eventlog.Digest{predict.Value(r)}
		}
	}
	if err := os.WriteFile(o.out, b.image, 0o644); err != nil {
		return err
	}
	if err := writeJSON(stem+".manifest.json", b.manifest); err != nil {
		return err
	}
	if err := writeJSON(stem+".pcrs.json", map[string]any{"sha256": values, "events": registers}); err != nil {
		return err
	}
	if o.key == "" {
		return nil
	}
	return o.sign(stem + ".signed.efi")
}

func writeJSON(file string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

// sign has sbsign write a signed copy.
func (o *options) sign(to string) error {
	args := []string{"--key", o.key, "--cert", o.cert, "--output", to, o.out}
	if strings.HasPrefix(o.key, "pkcs11:") {
		args = append([]string{"--engine", "pkcs11"}, args...)
	}
	cmd := exec.Command("sbsign", args...)
	cmd.Stdin = os.Stdin // it asks for passphrase or PIN
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("sbsign: %w", err)
	}
	return nil
}
