package config

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"portcullis/api/locks"
	"portcullis/api/locks/lockkey"
	"portcullis/cmd/internal/input"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/signkey"
)

// Locks says how adapters are locked.
type Locks struct {
	Root       string `yaml:"root"`
	Profile    string `yaml:"profile"`
	SigningKey string `yaml:"signing_key"`
	KeyUUID    string `yaml:"key_uuid"`
	Binding    string `yaml:"binding"`
}

// maxLockFile bounds the files of the section.
const maxLockFile = 1 << 20

// loadLocks reads what the section names. Without a root no adapter is locked.
func loadLocks(c *Config) (*locks.Options, error) {
	l := &c.Locks
	if l.Root == "" {
		if l.Profile != "" || l.SigningKey != "" || l.KeyUUID != "" {
			return nil, errors.New("locks: there is no root for lock keys, and without one no adapter is locked; name it (locks.root), or leave the section empty")
		}
		return nil, nil
	}
	o := &locks.Options{}
	var err error
	if o.Root, err = loadLockRoot(c); err != nil {
		return nil, err
	}
	if l.Profile != "" {
		site, err := readSmall(c.Path(l.Profile))
		if err != nil {
			return nil, fmt.Errorf("locks.profile: %w", err)
		}
		o.Site = string(site)
	}
	if o.Binding, err = locks.ParseBinding(l.Binding); err != nil {
		return nil, fmt.Errorf("locks.binding: %w: what files of settings are bound to at least", err)
	}
	if (l.SigningKey == "") != (l.KeyUUID == "") {
		return nil, errors.New("locks: signing_key and key_uuid belong together: adapters find the key by its UUID")
	}
	if l.SigningKey == "" {
		return o, nil
	}
	if o.Key, err = nvconfig.ParseUUID(l.KeyUUID); err != nil {
		return nil, fmt.Errorf("locks.key_uuid: %w", err)
	}
	ref := l.SigningKey
	if !strings.HasPrefix(ref, "pkcs11:") {
		ref = c.Path(ref)
		if err := input.CheckPrivate(ref); err != nil {
			return nil, fmt.Errorf("locks.signing_key: %w", err)
		}
	}
	if o.Signer, err = signkey.Open(ref, signkey.Options{}); err != nil {
		return nil, fmt.Errorf("locks.signing_key: %w", err)
	}
	return o, nil
}

// loadLockRoot reads 64 hexadecimal digits from a file, or from a credential that
// systemd opened. Errors do not quote it.
func loadLockRoot(c *Config) (lockkey.Root, error) {
	file := c.Path(c.Locks.Root)
	if name, ok := strings.CutPrefix(c.Locks.Root, credentialPrefix); ok {
		if name == "" || filepath.Base(name) != name {
			return lockkey.Root{}, fmt.Errorf("locks.root: %q: want %sNAME, with no slash in the name", c.Locks.Root, credentialPrefix)
		}
		file = filepath.Join(os.Getenv("CREDENTIALS_DIRECTORY"), name)
	} else if err := input.CheckPrivate(file); err != nil {
		return lockkey.Root{}, fmt.Errorf("locks.root: %w", err)
	}
	text, err := readSmall(file)
	if err != nil {
		return lockkey.Root{}, fmt.Errorf("locks.root: %w; bring it back from where it is kept; if no adapter was ever locked, make one: portcullis keys root %s", err, file)
	}
	secret, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil {
		return lockkey.Root{}, fmt.Errorf("locks.root: %s: want hexadecimal digits", file)
	}
	defer clear(secret)
	return lockkey.NewRoot(secret)
}

func readSmall(file string) ([]byte, error) { return input.ReadFile(file, maxLockFile) }
