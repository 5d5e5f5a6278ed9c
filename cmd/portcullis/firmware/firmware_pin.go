package firmware

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullis/cli"
	"portcullis/firmware"
	"portcullis/firmware/image"
	"portcullis/firmware/pin"
)

// pinning is what "firmware pin" is asked for.
type pinning struct {
	pins, name, by string
	fingerprints   []string
	yes            bool
}

// pinned is what it prints.
type pinned struct {
	File   string             `json:"file"`
	Keys   []firmware.Carried `json:"keys"`
	Pinned []firmware.Signer  `json:"pinned"`
	Pins   string             `json:"pins,omitempty"` // the file that was written
}

func firmwarePin(env *cli.Env) *cobra.Command {
	p := pinning{}
	cmd := &cobra.Command{
		Use: "pin FILE", Short: "Show the keys that a firmware image carries, and pin selected keys", Args: cli.Operands("FILE"),
		Long: `Show the keys that firmware images carry, and pin selected keys. Pinning adds them to the file
of --pins, by which portcullis firmware verify and agents trust firmware. Keys that are already
in the file stay.

An attacker can make an image with a key of his own. Compare the fingerprint with one from
another source (another site, another download, a signed letter), and then name it with
--fingerprint. --yes instead pins all keys that signed the images: use it only for files that
you have reason to trust. Without either, nothing is pinned, and the exit status is 1.

A fingerprint is the SHA-256 of the key as "openssl pkey -pubin -outform DER" prints it.`,
		Example: "  portcullis firmware pin fw-ConnectX7.bin\n" +
			"  portcullis firmware pin fw-ConnectX7.bin --pins pins.yaml --name vendor --fingerprint sha256:4c0f...",
		RunE: func(_ *cobra.Command, args []string) error { return writePins(env, args[0], &p) },
	}
	f := cmd.Flags()
	f.StringVar(&p.pins, "pins", "", "YAML file of pinned keys, which is created or extended")
	f.StringArrayVar(&p.fingerprints, "fingerprint", nil, "pin the key with this fingerprint; may be given more than once")
	f.BoolVar(&p.yes, "yes", false, "pin the keys that signed the images, without a comparison")
	f.StringVar(&p.name, "name", "", "name for the keys in the file")
	f.StringVar(&p.by, "by", "", "person who pins them, for the file")
	return cmd
}

func writePins(env *cli.Env, file string, p *pinning) error {
	asked := p.yes || len(p.fingerprints) > 0
	if asked && p.pins == "" {
		return &cli.UsageError{Msg: "--pins is needed", Hint: "name the file to add the keys to"}
	}
	out := &pinned{File: file, Pinned: []firmware.Signer{}}
	var err error
	if out.Keys, err = carried(env, file); err != nil {
		return err
	}
	if asked {
		if err := p.pin(out); err != nil {
			return err
		}
	}
	if err := env.Print(out, out.show); err != nil {
		return err
	}
	if !asked {
		return cli.ErrNo
	}
	return nil
}

// carried returns the keys of all images of a file, each once. If an image is damaged, it returns an error: the keys of a
// damaged image cannot be trusted.
func carried(env *cli.Env, file string) (keys []firmware.Carried, err error) {
	keys = []firmware.Carried{}
	err = firmwareFile(env, file, func(r io.ReaderAt, size int64) error {
		return firmware.Images(r, size, func(i *firmware.Image) error {
			if i.Err != nil {
				return i.Err
			}
			found, err := i.Image.Check()
			if err != nil {
				return err
			}
			if len(found) > 0 {
				return fmt.Errorf("image %d is damaged: %v", i.Index, found[0])
			}
			more, err := firmware.Keys(i.Image)
			for _, k := range more {
				keys = merge(keys, k)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s: it carries no keys", file)
	}
	return keys, nil
}

// merge adds a key to those that were seen. It signed if it signed one image.
func merge(keys []firmware.Carried, k firmware.Carried) []firmware.Carried {
	i := slices.IndexFunc(keys, func(o firmware.Carried) bool {
		return o.UUID == k.UUID && o.Algorithm == k.Algorithm && o.Fingerprint != nil && k.Fingerprint != nil && *o.Fingerprint == *k.Fingerprint
	})
	if i < 0 {
		return append(keys, k)
	}
	keys[i].Signed = keys[i].Signed || k.Signed
	return keys
}

// pin adds the keys that were named to the file.
func (p *pinning) pin(out *pinned) error {
	chosen, err := p.choose(out.Keys)
	if err != nil {
		return err
	}
	set, err := p.read()
	if err != nil {
		return err
	}
	for _, k := range chosen {
		k.Name, k.AddedBy, k.Source = p.name, p.by, filepath.Base(out.File)
		if set, err = set.Add(k); err != nil {
			return cli.Hint(fmt.Errorf("%s: %w", p.pins, err), "nothing was written; find out which key is the vendor's before you trust either")
		}
		out.Pinned = append(out.Pinned, firmware.Signer{UUID: k.UUID, Algorithm: k.Algorithm, Name: k.Name, Fingerprint: k.Fingerprint()})
	}
	data, err := set.Encode()
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(p.pins, data, 0o644); err != nil {
		return unwritten(p.pins, err)
	}
	out.Pins = p.pins
	return nil
}

// choose are the keys that were asked for; each fingerprint must be one of them.
func (p *pinning) choose(keys []firmware.Carried) (chosen []pin.Key, err error) {
	take := func(k firmware.Carried) {
		if !slices.ContainsFunc(chosen, func(c pin.Key) bool { return c.UUID == k.UUID && c.Fingerprint() == *k.Fingerprint }) {
			chosen = append(chosen, k.Key)
		}
	}
	for _, text := range p.fingerprints {
		f, err := pin.ParseFingerprint(text)
		if err != nil {
			return nil, &cli.UsageError{Msg: err.Error(), Hint: "portcullis firmware pin FILE shows them"}
		}
		i := slices.IndexFunc(keys, func(k firmware.Carried) bool { return k.Fingerprint != nil && *k.Fingerprint == f })
		if i < 0 {
			return nil, cli.Hint(fmt.Errorf("no key of the file has the fingerprint %v", f), "nothing was pinned; run without --fingerprint to see the keys of the file")
		}
		take(keys[i])
	}
	for _, k := range keys {
		if p.yes && k.Signed && k.Key.Signs&image.SignsFirmware != 0 {
			take(k)
		}
	}
	if len(chosen) == 0 {
		return nil, cli.Hint(errors.New("none of the keys signed an image of the file"), "if you know a key from another source, name it with --fingerprint")
	}
	return chosen, nil
}

// read are the keys that are in the file, if there is one.
func (p *pinning) read() (*pin.Set, error) {
	data, err := input.ReadFile(p.pins, pin.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return pin.Parse(p.pins, data)
}

func (p *pinned) show(w *cli.Columns) {
	showCarried(w, p.Keys)
	w.Gap()
	if p.Pins == "" {
		w.Text("nothing was pinned: compare a fingerprint with one from another source, then name it with --pins and --fingerprint")
		return
	}
	for _, k := range p.Pinned {
		w.Text("pinned in %s: %v, %v, %v", p.Pins, k.UUID, k.Algorithm, k.Fingerprint)
	}
}

// unwritten says why a file could not be written, without the name of the one that
// would have been renamed to it.
func unwritten(file string, err error) error {
	cause := err
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		cause = e.Err
	}
	if errors.Is(cause, fs.ErrNotExist) {
		return cli.Hint(fmt.Errorf("write %s: there is no folder %s", file, filepath.Dir(file)), "create the folder, or name another file with --pins")
	}
	return fmt.Errorf("write %s: %w", file, cause)
}
