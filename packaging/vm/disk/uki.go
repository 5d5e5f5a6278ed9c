//go:build vm

package disk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"portcullis/packaging/image/uki"
	"portcullis/packaging/vm/kernel"
	"portcullis/packaging/vm/machine"
)

// Files of Debian's package systemd-boot-efi.
const (
	stubFile = "/usr/lib/systemd/boot/efi/linuxx64.efi.stub"
	// SystemdBoot is systemd's boot loader.
	SystemdBoot = "/usr/lib/systemd/boot/efi/systemd-bootx64.efi"
)

// UKI writes a unified kernel image of a kernel, an initramfs and a command line, under an image version.
func UKI(to string, k kernel.Kernel, initrd, cmdline, version string) error {
	parts := uki.Parts{Cmdline: cmdline, OSRelease: "ID=debian\nIMAGE_ID=vm\nIMAGE_VERSION=" + version + "\n"}
	for from, part := range map[string]*[]byte{stubFile: &parts.Stub, k.Image(): &parts.Kernel, initrd: &parts.Initrd} {
		b, err := os.ReadFile(from)
		if err != nil {
			return fmt.Errorf("%w: run \"packaging/setup.sh vm\"", err)
		}
		*part = b
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	return errors.Join(uki.Build(out, parts), out.Close())
}

// SnakeoilKey writes the key that machine.VariablesSnakeoil trusts without its passphrase, for programs that ask for none.
func SnakeoilKey(to string) error {
	return run("", "openssl", "pkey", "-in", machine.SnakeoilKey, "-passin", "pass:"+machine.SnakeoilPassphrase, "-out", to)
}

// Sign signs an EFI program with the key that machine.VariablesSnakeoil trusts.
func Sign(to, from string) error {
	dir, err := os.MkdirTemp("", "portcullis-vm-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	key := filepath.Join(dir, "key")
	if err := SnakeoilKey(key); err != nil {
		return err
	}
	return run("", "sbsign", "--key", key, "--cert", machine.SnakeoilCert, "--output", to, from)
}
