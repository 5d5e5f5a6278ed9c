// Package fwcatalog holds what a site provides for its agents to judge the firmware of adapters: a folder with the trusted
// keys, the wanted firmware, and images to compare with.
//
//	pins.yaml    keys, as "portcullis firmware pin" writes them
//	policy.yaml  boards and versions, as package firmware/policy describes
//	images/      image files and packages
//
// A file in the folder is not trusted because it is there: an image counts only if it is signed under a key of pins.yaml
// and allowed by policy.yaml.
package fwcatalog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"portcullis/agent/hca"
	"portcullis/firmware"
	"portcullis/firmware/image"
	"portcullis/firmware/pin"
	"portcullis/firmware/policy"
)

// Names in the folder, and how many images there may be.
const (
	pinsFile   = "pins.yaml"
	policyFile = "policy.yaml"
	imagesDir  = "images"
	maxImages  = 256
)

// Library implements hca.Site. It does not change.
type Library struct {
	site   firmware.Site
	images map[key]entry
}

type key struct {
	psid    string
	version hca.Version
}

// entry is the image of a board and version, or why there is none.
type entry struct {
	image  hca.Image
	digest policy.Digest
	why    string // not empty: it does not count
	clash  bool   // nor does any further one
}

// Open reads a folder. Images that do not count are kept with the reason; only
// what cannot be read is an error.
func Open(dir string) (*Library, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("firmware library: %w", err)
	}
	defer root.Close()
	l := &Library{images: map[key]entry{}}
	var errs [2]error
	l.site.Pins, errs[0] = parse(root, pinsFile, pin.MaxFile, pin.Parse)
	l.site.Policy, errs[1] = parse(root, policyFile, policy.MaxFile, policy.Parse)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("firmware library %s: %w", dir, err)
	}
	if err := l.readImages(root); err != nil {
		return nil, fmt.Errorf("firmware library %s: %w", dir, err)
	}
	return l, nil
}

func parse[T any](root *os.Root, name string, limit int64, parse func(string, []byte) (T, error)) (v T, err error) {
	f, err := root.Open(name)
	if err != nil {
		return v, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return v, err
	}
	return parse(name, data) // which refuses what is longer
}

func (l *Library) readImages(root *os.Root) error {
	d, err := root.Open(imagesDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	entries, err := d.ReadDir(maxImages + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(entries) > maxImages {
		return fmt.Errorf("%s holds more than %d files", imagesDir, maxImages)
	}
	for _, e := range entries {
		if err := l.readFile(root, imagesDir+"/"+e.Name()); err != nil {
			return fmt.Errorf("%s: %w", e.Name(), err)
		}
	}
	return nil
}

func (l *Library) readFile(root *os.Root, name string) error {
	info, err := root.Stat(name)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("is not a regular file")
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	report, err := firmware.Verify(f, info.Size(), l.site)
	if err != nil {
		return err
	}
	for i := range report.Images {
		l.add(name, &report.Images[i])
	}
	return nil
}

// add adds an image. If two different images have one board and version, neither counts: the running one cannot be
// distinguished from outside.
func (l *Library) add(name string, r *firmware.ImageReport) {
	if r.Identity == nil || r.Identity.Info == nil {
		return // it does not identify itself, so no adapter can be compared with it
	}
	info := r.Identity.Info
	k := key{string(info.PSID), versionOf(info.Version)}
	e := entry{why: fmt.Sprintf("%s: %s", name, r.Verdict)}
	if len(r.Refusals) > 0 {
		e.why = fmt.Sprintf("%s: the policy refuses it: %s", name, r.Refusals[0].Text)
	}
	if r.Accepted() && r.Identity.Digest != nil && len(r.Signers) > 0 {
		e = entry{digest: *r.Identity.Digest, image: hca.Image{
			PSID: k.psid, Version: k.version, SecurityVersion: r.Identity.SecurityVersion,
			SHA256: r.Identity.Digest.String(), KeyID: r.Signers[0].UUID.String(),
		}}
	}
	switch before, twice := l.images[k]; {
	case before.clash, twice && before.why == "" && e.why != "": // a good one stays
		return
	case twice && before.why == "" && before.digest != e.digest:
		e = entry{why: fmt.Sprintf("%s: another image of %s %v has the same version", name, k.psid, k.version), clash: true}
	}
	l.images[k] = e
}

func versionOf(v image.Version) hca.Version {
	return hca.Version{Major: uint32(v.Major), Minor: uint32(v.Minor), SubMinor: uint32(v.Sub)}
}

// Image implements hca.Site.
func (l *Library) Image(psid string, running hca.Version) (hca.Image, bool, string) {
	e, ok := l.images[key{psid, running}]
	switch {
	case !ok:
		return hca.Image{}, false, fmt.Sprintf("no image of %s %v is in the library", psid, running)
	case e.why != "":
		return hca.Image{}, false, e.why
	}
	return e.image, true, ""
}

// Refuse implements hca.Site. If the policy lists digests, that of the image with this board and version counts.
func (l *Library) Refuse(c hca.Claim) []string {
	const most = 1<<16 - 1
	if c.Version.Major > most || c.Version.Minor > most || c.Version.SubMinor > most {
		return []string{fmt.Sprintf("no image has a version such as %v", c.Version)}
	}
	subject := policy.Subject{
		PSID:            image.PSID(c.PSID),
		Version:         image.Version{Major: uint16(c.Version.Major), Minor: uint16(c.Version.Minor), Sub: uint16(c.Version.SubMinor)},
		Hardware:        []image.HardwareID{image.HardwareID(c.Hardware)},
		SecurityVersion: c.SecurityVersion,
		Secure:          true, Signed: true, // judged by the device's report, not here
	}
	if e, ok := l.images[key{c.PSID, c.Version}]; ok && e.why == "" {
		subject.Digest = &e.digest
	}
	var out []string
	for _, r := range l.site.Policy.Judge(subject) {
		out = append(out, fmt.Sprintf("%s: %s", r.Code, r.Text))
	}
	return out
}
