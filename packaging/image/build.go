package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"

	"portcullis/packaging/image/uki"
)

// order is what an image is built from.
type order struct {
	site    *site
	agent   string // package of portcullis-agent
	kernel  string // Debian's package, which may be one that depends on the kernel's
	version string // of the image
	lock    *manifest
}

// built is an image with its description.
type built struct {
	image    []byte
	manifest manifest
}

const stubFile = "usr/lib/systemd/boot/efi/linuxx64.efi.stub"

// build makes the image.
func (d *debian) build(o order) (*built, error) {
	packages, k, err := d.packages(o)
	if err != nil {
		return nil, err
	}
	t := newTree()
	if err := d.fill(t, packages, k, o); err != nil {
		return nil, err
	}
	plain := &counted{}
	initrd, err := d.compress(func(w io.Writer) error { return t.write(io.MultiWriter(w, plain)) })
	if err != nil {
		return nil, err
	}
	linux, err := os.ReadFile(k.image())
	if err != nil {
		return nil, err
	}
	stub, err := os.ReadFile(path.Join(packages["systemd-boot-efi"].dir, stubFile))
	if err != nil {
		return nil, err
	}
	var image bytes.Buffer
	err = uki.Build(&image, uki.Parts{
		Stub: stub, Kernel: linux, Initrd: initrd, Cmdline: o.site.cmdline(), OSRelease: string(t.nodes["usr/lib/os-release"].data),
	})
	if err != nil {
		return nil, err
	}
	b := &built{image: image.Bytes()}
	b.manifest, err = d.describe(b.image, t, packages, k, o)
	b.manifest.Initrd = initrdSize{Files: len(t.nodes), Bytes: plain.n, Compressed: len(initrd)}
	return b, err
}

// packages gets what files are picked from.
func (d *debian) packages(o order) (map[string]pkg, *kernel, error) {
	names := append(slices.Sorted(maps.Keys(roots)), o.kernel)
	all, err := d.closure(names)
	if err != nil {
		return nil, nil, err
	}
	if err := o.lock.check(all); err != nil {
		return nil, nil, err
	}
	image := ""
	wanted := map[string]string{}
	for name, version := range all {
		isKernel := strings.HasPrefix(name, "linux-image-") && !strings.HasSuffix(name, "-image-amd64") && !strings.HasSuffix(name, "-image-cloud-amd64")
		if isKernel {
			image = name
		}
		if isKernel || roots[name] != "" || isLibrary(name) {
			wanted[name] = version
		}
	}
	sums, err := d.digests(wanted)
	if err != nil {
		return nil, nil, err
	}
	out := map[string]pkg{}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if out[name], err = d.get(name, wanted[name], sums[name+"="+wanted[name]]); err != nil {
			return nil, nil, err
		}
	}
	if image == "" {
		return nil, nil, fmt.Errorf("package %s brings no kernel", o.kernel)
	}
	own, err := d.local(o.agent)
	if err != nil {
		return nil, nil, err
	}
	out[own.Name] = own
	k, err := d.openKernel(out[image])
	return out, k, err
}

// isLibrary reports packages that may have libraries which picked programs need.
func isLibrary(name string) bool {
	return (strings.HasPrefix(name, "lib") || name == "zlib1g") && !strings.HasPrefix(name, "libperl") && !strings.HasPrefix(name, "libpython")
}

// fill puts everything into the tree.
func (d *debian) fill(t *tree, packages map[string]pkg, k *kernel, o order) error {
	for name, perm := range fixed {
		t.dir(name, perm)
	}
	for name, text := range texts {
		t.text(name, text)
	}
	a := newAccounts()
	if err := a.read(path.Join(packages["portcullis-agent"].dir, "usr/lib/sysusers.d/portcullis-agent.conf")); err != nil {
		return err
	}
	a.put(t)
	p, err := newPicker(t, packages)
	if err != nil {
		return err
	}
	for _, from := range picked {
		for _, pattern := range from.patterns {
			if err := p.take(from.pkg, pattern); err != nil {
				return err
			}
		}
	}
	for _, name := range opened {
		if p.library[name].pkg != "" {
			if err := p.lib(name); err != nil {
				return err
			}
		}
	}
	if err := d.addModules(t, k, o.modules(k)); err != nil {
		return err
	}
	t.link("init", "usr/lib/systemd/systemd")
	t.link("etc/os-release", "../usr/lib/os-release")
	t.link("etc/resolv.conf", "../run/systemd/resolve/resolv.conf")
	t.link("var/run", "../run")
	t.link("usr/lib/systemd/system/default.target", "multi-user.target")
	t.text("usr/lib/os-release", osRelease(o.version))
	return o.addSite(t, packages, k)
}

// modules names those of the image.
func (o *order) modules(k *kernel) []string {
	names := append(slices.Collect(maps.Keys(modules)), o.site.Modules...)
	for name := range wished {
		if k.has(name) {
			names = append(names, name)
		}
	}
	return names
}

// addSite adds what the site decides.
func (o *order) addSite(t *tree, packages map[string]pkg, k *kernel) error {
	const units = "usr/lib/systemd/system/"
	handover, text := o.site.handover()
	t.text(units+handover, text)
	refused, text := o.site.refused()
	t.text(units+refused, text)
	const dropIns = units + "portcullis-agent.service.d/"
	t.text(dropIns+"50-image.conf", fmt.Sprintf(agentDropIn, handover, refused))
	if o.vendorTools(k) {
		b, err := os.ReadFile(path.Join(packages["portcullis-agent"].dir, "usr/share/portcullis/vendor-tools.conf"))
		if err != nil {
			return err
		}
		t.text(dropIns+"60-vendor-tools.conf", string(b))
	}
	for target, list := range wants {
		for _, unit := range list {
			t.link(units+target+".wants/"+unit, "../"+unit)
		}
	}
	return o.site.put(t)
}

// vendorTools reports whether the agent runs as root, for mstflint's sake.
func (o *order) vendorTools(k *kernel) bool {
	if o.site.VendorTools != nil {
		return *o.site.VendorTools
	}
	return !k.has("mlx5_fwctl")
}

func osRelease(version string) string {
	return fmt.Sprintf("NAME=\"Portcullis provisioning image\"\nID=portcullis\nID_LIKE=debian\nPRETTY_NAME=\"Portcullis provisioning image %[1]s\"\n"+
		"IMAGE_ID=portcullis-image\nIMAGE_VERSION=%[1]s\n", version)
}

// compress compresses what is written, as Linux unpacks it.
func (d *debian) compress(write func(io.Writer) error) ([]byte, error) {
	// One thread: with several the result depends on their number.
	cmd := exec.Command("zstd", "-q", fmt.Sprintf("-%d", d.level), "--single-thread", "--no-check", "-c")
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("zstd: %w: run \"packaging/setup.sh image\"", err)
	}
	err = errors.Join(write(in), in.Close())
	if e := cmd.Wait(); e != nil {
		err = errors.Join(err, fmt.Errorf("zstd: %w: %s", e, said.String()))
	}
	return out.Bytes(), err
}

// counted counts what is written to it.
type counted struct{ n int64 }

// Write implements io.Writer.
func (c *counted) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}
