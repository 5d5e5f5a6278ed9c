package tpmtest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// vendorFiles are what swtpm_localca keeps in its folder: two CAs, of which RSA keys take most of the time to
// make a TPM, and the next serial number.
var vendorFiles = []string{
	"swtpm-localca-rootca-privkey.pem", "swtpm-localca-rootca-cert.pem", "signkey.pem", "issuercert.pem", "certserial",
}

// vendor holds the files of the first vendor that this process made. TPMs without a shared folder have a copy each.
var vendor struct {
	sync.Mutex
	files map[string][]byte
}

// withVendor runs setup with the process's vendor in the folder ca. The first call has setup make that vendor.
func withVendor(ca string, setup func() error) error {
	vendor.Lock()
	files := vendor.files
	if files != nil {
		vendor.Unlock()
		if err := copyVendor(ca, files); err != nil {
			return err
		}
		return setup()
	}
	defer vendor.Unlock()
	err := setup()
	if err == nil {
		vendor.files, err = readVendor(ca)
	}
	return err
}

func readVendor(ca string) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, name := range vendorFiles {
		data, err := os.ReadFile(filepath.Join(ca, name))
		if err != nil {
			return nil, err
		}
		files[name] = data
	}
	return files, nil
}

// copyVendor leaves a vendor that is in the folder already.
func copyVendor(ca string, files map[string][]byte) error {
	if _, err := os.Stat(filepath.Join(ca, "signkey.pem")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(ca, name), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
