package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"portcullis/attest/reference/predict"
)

// manifest says what an image consists of.
type manifest struct {
	Version      string     `json:"version"`
	Size         int        `json:"size"`
	SHA256       string     `json:"sha256"`       // of the file, without signature
	Authenticode string     `json:"authenticode"` // with and without signature
	Kernel       string     `json:"kernel"`
	Stub         string     `json:"stub"`
	Cmdline      string     `json:"cmdline"`
	Initrd       initrdSize `json:"initrd"`
	Packages     []part     `json:"packages"`
	Site         []part     `json:"site"` // files of the site's folder
	Missing      []string   `json:"missing,omitempty"`
	AsRoot       bool       `json:"agent_runs_as_root"`
	Index        []string   `json:"index"` // of apt: address and digest
	Tools        []string   `json:"tools"` // of the machine that built it, on which bytes depend
}

type initrdSize struct {
	Files      int   `json:"files"`
	Bytes      int64 `json:"bytes"`
	Compressed int   `json:"compressed"`
}

// part is where files of the image come from.
type part struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
	Link    string `json:"link,omitempty"` // target, of a symbolic link
	Files   int    `json:"files,omitempty"`
	Bytes   int64  `json:"bytes,omitempty"`
}

func readManifest(file string) (*manifest, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	m := &manifest{}
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return m, nil
}

// check reports packages of another version than the manifest has. A nil manifest wants none.
func (m *manifest) check(index map[string]string) error {
	if m == nil {
		return nil
	}
	var errs []error
	for _, p := range m.Packages {
		if v := index[p.Name]; v != p.Version && p.Name != "portcullis-agent" {
			errs = append(errs, fmt.Errorf("package %s: the index has version %q, the manifest wants %s: use the sources of that day (snapshot.debian.org)", p.Name, v, p.Version))
		}
	}
	return errors.Join(errs...)
}

// describe makes the manifest of an image.
func (d *debian) describe(image []byte, t *tree, packages map[string]pkg, k *kernel, o order) (manifest, error) {
	i, err := predict.Read(image)
	if err != nil {
		return manifest{}, err
	}
	sum := sha256.Sum256(image)
	m := manifest{
		Version: o.version, Size: len(image), SHA256: hex.EncodeToString(sum[:]), Authenticode: i.Digest.String(),
		Kernel: k.release, Stub: i.Stub, Cmdline: i.Cmdline, AsRoot: o.vendorTools(k), Packages: partsOf(t, packages),
	}
	for _, name := range slices.Sorted(maps.Keys(wished)) {
		if !k.has(name) {
			m.Missing = append(m.Missing, name+": kernel "+k.release+" has no such module: "+wished[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.site.files)) {
		file := o.site.files[name]
		if target, err := os.Readlink(file); err == nil {
			m.Site = append(m.Site, part{Name: name, Link: target})
			continue
		}
		m.Site = append(m.Site, part{Name: name, SHA256: digest(file)})
	}
	if m.Index, err = d.index(); err != nil {
		return m, err
	}
	for _, tool := range [][]string{{"zstd", "--version"}, {"/sbin/depmod", "--version"}} {
		said, err := d.run(tool[0], tool[1:]...)
		if err != nil {
			return m, err
		}
		first, _, _ := strings.Cut(said, "\n")
		m.Tools = append(m.Tools, strings.TrimSpace(first))
	}
	return m, nil
}

// partsOf names the packages that a file of the image is from.
func partsOf(t *tree, packages map[string]pkg) []part {
	parts := map[string]*part{}
	for _, n := range t.nodes {
		if n.pkg == "" {
			continue
		}
		p := parts[n.pkg]
		if p == nil {
			from := packages[n.pkg]
			p = &part{Name: from.Name, Version: from.Version, SHA256: from.SHA256}
			parts[n.pkg] = p
		}
		p.Files++
		p.Bytes += n.size
	}
	stub := packages["systemd-boot-efi"]
	out := []part{{Name: stub.Name, Version: stub.Version, SHA256: stub.SHA256, Files: 1}}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		out = append(out, *parts[name])
	}
	slices.SortFunc(out, func(a, b part) int { return strings.Compare(a.Name, b.Name) })
	return out
}
