package main

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"portcullis/firmware/image"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/nvconfigtest"
	"portcullis/firmware/pin"
)

// TestNVConfigScripts runs the stories of nvconfig with the files that mstconfig
// made, and the keys that it signed them with.
func TestNVConfigScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Files: []string{"testdata/nvconfig/nvconfig.txtar"},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			return settingsFiles(t, e.WorkDir)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

func settingsFiles(t *testing.T, dir string) error {
	for _, name := range []string{"tenant-lock.raw", "tenant-lock.digest.bin", "tenant-lock.rsa2048.bin", "tenant-lock.rsa4096.bin"} {
		b, err := os.ReadFile(filepath.Join("../../firmware/nvconfig/testdata", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	key := nvconfigtest.Key(t, 4096)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return err
	}
	small := nvconfigtest.Key(t, 2048)
	pins, err := pin.New(pin.Key{
		UUID: image.UUID(nvconfigtest.KeyUUID), Algorithm: image.RSA4096SHA512, Exponent: uint32(key.E), Modulus: key.N.Bytes(),
		Signs: image.SignsVendorConf, Name: "site", AddedBy: "test", Source: "test",
	}, pin.Key{
		UUID: image.UUID(nvconfigtest.KeyUUID), Algorithm: image.RSA2048SHA256, Exponent: uint32(small.E), Modulus: small.N.Bytes(),
		Signs: image.SignsFirmware, Name: "vendor, firmware only", AddedBy: "test", Source: "test",
	})
	if err != nil {
		return err
	}
	text, err := pins.Encode()
	if err != nil {
		return err
	}
	token := nvconfig.OEMItem(nvconfig.FileItemAddress(7), make([]byte, 4))
	psid, err := nvconfig.ForPSID("TST0000000001", "")
	if err != nil {
		return err
	}
	opens, err := nvconfig.Seal([]nvconfig.Item{token, psid})
	if err != nil {
		return err
	}
	id, err := nvconfig.FileID{KeepSame: true, Version: 1}.Item()
	if err != nil {
		return err
	}
	soft := nvconfig.OEMItem(nvconfig.GlobalItem(290), []byte{0x80, 0, 0, 0})
	soft.OverrideEnabled = true
	weak, err := nvconfig.Seal([]nvconfig.Item{id, psid, soft})
	if err != nil {
		return err
	}
	for name, b := range map[string][]byte{
		"weak.bin":  weak,
		"key.pem":   pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		"pub.pem":   pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		"pins.yaml": text,
		"token.bin": opens,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}
