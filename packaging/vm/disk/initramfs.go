//go:build vm

// Package disk makes the disks that the virtual machines boot from: initramfs images, EFI system partitions, root file
// systems, and seeds with the files that differ from lab to lab.
package disk

import (
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"portcullis/packaging/image/cpio"
	"portcullis/packaging/vm/kernel"
)

// early are the modules that the init program loads before it looks for drives, in every machine.
var early = []string{"virtio_pci", "virtio_blk"}

// Initramfs writes an initramfs of the init program and the modules that it needs to find the drives.
func Initramfs(to string, k kernel.Kernel, init string) error {
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	zip, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
	if err != nil {
		return err
	}
	w := cpio.NewWriter(zip)
	err = writeInitramfs(w, k, init)
	return errors.Join(err, w.Close(), zip.Close(), out.Close())
}

func writeInitramfs(w *cpio.Writer, k kernel.Kernel, init string) error {
	modules, err := k.Dependencies(early...)
	if err != nil {
		return err
	}
	for _, dir := range []string{"dev", "early", "proc", "sys"} {
		if err := w.Dir(dir, 0o755); err != nil {
			return err
		}
	}
	for i, module := range modules {
		data, err := os.ReadFile(filepath.Join(k.Modules(), module))
		if err != nil {
			return err
		}
		if err := w.Bytes(fmt.Sprintf("early/%02d-%s", i, filepath.Base(module)), 0o644, data); err != nil {
			return err
		}
	}
	data, err := os.ReadFile(init)
	if err != nil {
		return err
	}
	return w.Bytes("init", 0o755, data)
}

// Modules adds to a seed the named modules, their dependencies, and the files that modprobe reads to find them.
func (s *Seed) Modules(k kernel.Kernel, names ...string) error {
	files, err := k.Dependencies(names...)
	if err != nil {
		return err
	}
	for _, name := range append(files, "modules.dep", "modules.alias", "modules.softdep", "modules.builtin", "modules.order") {
		if err := s.File(filepath.Join("/lib/modules", k.Release, name), filepath.Join(k.Modules(), name)); err != nil {
			return err
		}
	}
	return nil
}
