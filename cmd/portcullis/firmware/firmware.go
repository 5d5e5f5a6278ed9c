package firmware

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
	"portcullis/firmware"
	"portcullis/firmware/image"
	"portcullis/firmware/mfa2"
)

func firmwareCommand(env *cli.Env) *cobra.Command {
	c := cli.Group("firmware", "Describe and verify firmware images, and pin the keys that sign them",
		firmwareDescribe(env), firmwareVerify(env), firmwarePin(env))
	c.Long = `Describe and verify firmware images of adapters, and pin the keys that sign them. No service is
needed, and no adapter is accessed.

FILE is an image (layouts FS3, FS4, FS5), a raw dump of a flash, or a package of
images (MFA2); - is standard input.`
	return c
}

// maxFirmware is the size of the largest file that is read from standard input.
const maxFirmware = max(image.MaxSize, mfa2.MaxSize)

// firmwareFile opens a file for its images, which are read at random. Errors name it.
func firmwareFile(env *cli.Env, name string, f func(r io.ReaderAt, size int64) error) error {
	if name == "-" {
		data, err := env.ReadFile(name, maxFirmware)
		if err != nil {
			return err
		}
		return named("standard input", f(bytes.NewReader(data), int64(len(data))))
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return cli.Hint(fmt.Errorf("%s is not a regular file", name), "read a flash into a file first; - is standard input")
	}
	return named(name, f(file, info.Size()))
}

// named says which file an error is of, if there is one.
func named(file string, err error) error {
	if err == nil {
		return nil
	}
	return damaged(fmt.Errorf("%s: %w", file, err))
}

// imageFlag names one image of a package; only stays as it is without it.
func imageFlag(c *cobra.Command, only *int) {
	c.Flags().Var((*imageIndex)(only), "image", "only the image with this index in its package, in full")
}

// imageIndex is an option's image: 0 or more. A negative value means none, and cannot be requested.
type imageIndex int

func (i *imageIndex) Type() string { return "int" }

func (i *imageIndex) String() string {
	if *i < 0 {
		return ""
	}
	return strconv.Itoa(int(*i))
}

func (i *imageIndex) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return errors.New("want the index of an image, 0 or more")
	}
	*i = imageIndex(n)
	return nil
}

// chosen reports whether an image is asked for.
func chosen(only, index int) bool { return only < 0 || only == index }

// described is one image as "firmware describe" prints it.
type described struct {
	Index    int                `json:"index"`
	Boards   []string           `json:"boards,omitempty"`
	Size     int64              `json:"size"`
	Problem  string             `json:"problem,omitempty"` // why it could not be opened
	Identity *firmware.Identity `json:"identity,omitempty"`
	Findings []image.Finding    `json:"findings,omitempty"`
	Sections []image.Section    `json:"sections,omitempty"`
	Keys     []firmware.Carried `json:"keys,omitempty"`
}

func firmwareDescribe(env *cli.Env) *cobra.Command {
	only := -1
	cmd := &cobra.Command{
		Use: "describe FILE", Short: "Describe what firmware images contain", Args: cli.Operands("FILE"),
		Long: `Describe what firmware images contain: version, PSID, chips, security attributes, digest,
sections, the keys they carry, and the GUIDs in a dump of a flash. A package is shown with one
line for each image; --image shows one image in full.

Nothing of this is proven, because the maker of an image chooses its contents. Use
"portcullis firmware verify" to check an image.`,
		Example: "  portcullis firmware describe fw-ConnectX7.bin\n" +
			"  portcullis firmware describe --image 3 --json package.mfa2",
		RunE: func(_ *cobra.Command, args []string) error {
			out := []described{}
			err := firmwareFile(env, args[0], func(r io.ReaderAt, size int64) error {
				return firmware.Images(r, size, func(i *firmware.Image) error {
					if !chosen(only, i.Index) {
						return nil
					}
					d, err := describeImage(i)
					out = append(out, d)
					return err
				})
			})
			if err != nil {
				return err
			}
			if len(out) == 0 {
				return fmt.Errorf("%s: it has no image %d", args[0], max(only, 0))
			}
			if err := env.Print(out, func(w *cli.Columns) { showDescribed(w, out) }); err != nil {
				return err
			}
			if len(out) == 1 && out[0].Problem != "" {
				return cli.ErrNo
			}
			return nil
		},
	}
	imageFlag(cmd, &only)
	return cmd
}

// describeImage reads all of an image that can be read.
func describeImage(i *firmware.Image) (d described, err error) {
	d = described{Index: i.Index, Boards: i.Boards, Size: i.Size}
	if i.Err != nil {
		d.Problem = i.Err.Error()
		return d, nil
	}
	d.Sections = i.Image.Sections
	steps := []func() error{
		func() (err error) { d.Findings, err = i.Image.Check(); return err },
		func() (err error) { d.Identity, err = firmware.Describe(i.Image); return err },
		func() (err error) { d.Keys, err = firmware.Keys(i.Image); return err },
	}
	for _, step := range steps {
		if err := step(); image.IsLayout(err) {
			d.Problem = err.Error()
		} else if err != nil {
			return d, err
		}
	}
	return d, nil
}

func showDescribed(w *cli.Columns, all []described) {
	if len(all) == 1 {
		all[0].show(w)
		return
	}
	w.Row("IMAGE", "PSID", "LAYOUT", "VERSION", "CHIPS", "DIGEST", "PROBLEM")
	for _, d := range all {
		cells := []string{fmt.Sprint(d.Index), strings.Join(d.Boards, " "), "", "", "", "", d.problems()}
		if id := d.Identity; id != nil {
			cells[2] = id.Format.String()
			if id.Info != nil {
				cells[1], cells[3], cells[4] = string(id.Info.PSID), id.Info.Version.String(), strings.Join(id.Chips, " ")
			}
			if id.Digest != nil {
				cells[5] = id.Digest.String()
			}
		}
		w.Row(cells...)
	}
}

// problems are all that is wrong, in one line.
func (d *described) problems() string {
	words := []string{}
	if d.Problem != "" {
		words = append(words, d.Problem)
	}
	for _, f := range d.Findings {
		words = append(words, f.String())
	}
	return strings.Join(words, "; ")
}

func (d *described) show(w *cli.Columns) {
	if id := d.Identity; id != nil {
		showIdentity(w, id)
	}
	if p := d.problems(); p != "" {
		w.Gap()
		w.Text("problems: %s", p)
	}
	if len(d.Sections) > 0 {
		w.Gap()
		w.Row("SECTION", "AT", "BYTES", "OF")
		for _, s := range d.Sections {
			of := "image"
			if s.Device {
				of = "device"
			}
			w.Row(s.Type.String(), fmt.Sprintf("0x%x", s.Offset), fmt.Sprint(s.Size), of)
		}
	}
	if len(d.Keys) > 0 {
		w.Gap()
		showCarried(w, d.Keys)
		w.Text("keys in an image do not prove where the image is from")
	}
}

func showIdentity(w *cli.Columns, id *firmware.Identity) {
	kind := "whole image"
	switch {
	case id.Component:
		kind = "update component"
	case id.Start != 0:
		kind = fmt.Sprintf("at 0x%x of a flash", id.Start)
	}
	w.Row("layout", id.Format.String()+", "+kind)
	if id.Opaque != "" {
		w.Row("opaque", id.Opaque)
	}
	if i := id.Info; i != nil {
		w.Row("version", i.Version.String())
		w.Row("released", i.Released)
		w.Row("product version", i.ProductVersion)
		w.Row("PSID", string(i.PSID))
		w.Row("chips", strings.Join(id.Chips, ", "))
		w.Row("PCI", fmt.Sprintf("%04x:%04x, subsystem %04x:%04x", i.PCIVendor, i.PCIDevice, i.SubsystemVend, i.SubsystemID))
		w.Row("name", i.Name)
		w.Row("description", i.Description)
		w.Row("security attributes", i.Flags.String())
	}
	w.Row("security version", fmt.Sprint(id.SecurityVersion))
	if id.Digest != nil {
		w.Row("digest", id.Digest.String())
	}
	if d := id.Device; d != nil {
		w.Row("PSID of the device", string(d.PSID))
		if d.Unread != "" {
			w.Row("addresses", "not known: "+d.Unread)
			return
		}
		w.Row("GUIDs", fmt.Sprintf("%v, %d", d.InForce.GUID, d.InForce.NumGUIDs))
		w.Row("GUIDs of the factory", fmt.Sprintf("%v, %d", d.Manufactured.GUID, d.Manufactured.NumGUIDs))
		w.Row("MACs", fmt.Sprintf("%v, %d", d.InForce.MAC, d.InForce.NumMACs))
		w.Row("addresses changed", cli.YesNo(id.Changed))
	}
}

func showCarried(w *cli.Columns, keys []firmware.Carried) {
	w.Row("KEY", "ALGORITHM", "MAY SIGN", "SIGNED THIS", "FINGERPRINT")
	for _, k := range keys {
		f := k.Problem
		if k.Fingerprint != nil {
			f = k.Fingerprint.String()
		}
		w.Row(k.UUID.String(), k.Algorithm.String(), strings.Join(k.Signs, " "), cli.YesNo(k.Signed), f)
	}
}

// damaged is the hint for a package or image that cannot be read.
func damaged(err error) error {
	if mfa2.IsFormat(err) || image.IsLayout(err) || errors.Is(err, image.ErrUnknown) {
		return cli.Hint(err, "fetch the file again, and compare its digest with the vendor's")
	}
	return err
}
