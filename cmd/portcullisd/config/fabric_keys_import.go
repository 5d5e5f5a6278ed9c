package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"portcullis/cmd/portcullisd/command"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keyfile"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys/keyimport"
	"portcullis/fabricsm/sm/mkeys/keyplace"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/vault"
)

// readRoot reads what opens sealed keys: a credential of systemd, or a file.
func readRoot(from string, path func(string) string) (vault.Root, error) {
	if name, ok := strings.CutPrefix(from, credentialPrefix); ok {
		return vault.CredentialRoot(os.Getenv("CREDENTIALS_DIRECTORY"), name)
	}
	return vault.FileRoot(path(from))
}

// OpenRoot reads what opens the sealed keys of devices.
func (c *Keys) OpenRoot(path func(string) string) (vault.Root, error) {
	root, err := readRoot(c.Root, path)
	if errors.Is(err, fs.ErrNotExist) && !strings.HasPrefix(c.Root, credentialPrefix) {
		return nil, command.Hint(fmt.Errorf("fabric.keys.root: %w", err),
			"if keys were sealed under it, bring it back from where it is kept; on a fabric without keys make it: portcullis keys root "+path(c.Root))
	}
	return root, err
}

// bindPlaces says what counts as the place of a device.
func (c *Keys) bindPlaces(to *sm.Config) {
	if !c.ManagesKeys() {
		return
	}
	switch c.Places {
	case placesDeclared:
		to.MKey.Places = keyplace.Declared
	case placesSeen:
		to.MKey.Places = keyplace.Seen
	default:
		to.MKey.Places = keyplace.Auto
	}
}

// KeyNotices says what of the keys is not as safe as it could be.
func (c *Keys) KeyNotices(core *sm.Config) []string {
	switch {
	case !c.ManagesMKeys() && c.MKey == KeyAuto:
		return []string{"devices get no M_Keys, and any host may reprogram them: fabric.keys.root names no root; portcullis keys root FILE makes one"}
	case !c.ManagesMKeys():
		return []string{"devices get no M_Keys, and any host may reprogram them: fabric.keys.m_key_enable is " + c.MKey}
	case c.MKey == keyDisable:
		return []string{"the M_Keys of devices are taken off, and any host may reprogram them: fabric.keys.m_key_enable is " + c.MKey}
	case core.MKey.Places == keyplace.Declared && core.Topology.Spec == nil:
		return []string{"no device gets an M_Key before a declared topology is put into force: fabric.keys.places is " + c.Places}
	case core.MKey.Places == keyplace.Seen, core.MKey.Places == keyplace.Auto && (core.Topology.Spec == nil || core.Topology.Mode != topospec.Enforce):
		return []string{"M_Keys are given to devices where they are seen first: no declared topology is enforced, and the port that shows a GUID first is believed"}
	}
	return nil
}

// maxImport bounds a file to take over.
const maxImport = keyfile.MaxSize

// readImport reads the M_Keys that another subnet manager left, nil if there are none.
func (c *Keys) readImport(path func(string) string) (*keyimport.Keys, error) {
	if c.Import == "" && c.ImportOptions == "" {
		return nil, nil
	}
	in := &keyimport.Keys{Keep: c.ImportKeep, Keys: make(map[ib.GUID]keys.Key), Behind: make(map[ib.Place]ib.GUID)}
	if c.Import != "" {
		if err := readKeyFiles(path(c.Import), in); err != nil {
			return nil, command.Hint(fmt.Errorf("fabric.keys.import: %w", err), inspectHint)
		}
		if err := mayStay(in); err != nil {
			return nil, command.Hint(fmt.Errorf("fabric.keys.import_keep: %w", err), "set it to false, and each device gets a key of its own")
		}
	}
	if c.ImportOptions != "" {
		name := path(c.ImportOptions)
		data, err := readImported(name)
		if err != nil {
			return nil, fmt.Errorf("fabric.keys.import_options: %w", err)
		}
		o, err := keyfile.ParseOptions(name, data)
		if err != nil {
			return nil, fmt.Errorf("fabric.keys.import_options: %w", err)
		}
		in.Single, _ = o.Single()
	}
	if len(in.Keys) == 0 && in.Single.IsZero() {
		return nil, nil
	}
	return in, nil
}

// mayStay returns an error if devices are to stay on imported keys, and two have the same.
func mayStay(in *keyimport.Keys) error {
	of := make(map[keys.Key]ib.GUID, len(in.Keys))
	for _, guid := range slices.Sorted(maps.Keys(in.Keys)) {
		key := in.Keys[guid]
		if other, twice := of[key]; twice && in.Keep && !key.IsZero() {
			return fmt.Errorf("%v and %v have the same M_Key, so this is no export of Portcullis", other, guid)
		}
		of[key] = guid
	}
	return nil
}

// readClassImport reads the keys of classes that another manager left, of those that
// are not ignored.
func (c *Keys) readClassImport(path func(string) string) (map[keys.Kind]map[ib.GUID]keys.Key, error) {
	if c.Import == "" {
		return nil, nil
	}
	out := make(map[keys.Kind]map[ib.GUID]keys.Key)
	for kind, enable := range map[keys.Kind]string{keys.CCKey: c.CCKey, keys.VSKey: c.VSKey, keys.N2NKey: c.N2NKey} {
		if enable == keyIgnore {
			continue
		}
		read, err := readKeyFile(path(c.Import), kind)
		if err != nil {
			return nil, command.Hint(fmt.Errorf("fabric.keys.import: %w", err), inspectHint)
		}
		if len(read) > 0 {
			out[kind] = read
		}
	}
	return out, nil
}

const inspectHint = "portcullis keys inspect DIR says what is there to take over"

// readKeyFile reads the file of a kind of key in a directory, nil if there is none.
func readKeyFile(dir string, kind keys.Kind) (map[ib.GUID]keys.Key, error) {
	name := filepath.Join(dir, keyfile.Name(kind))
	data, err := readImported(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, err := keyfile.Parse(name, data)
	if err != nil {
		return nil, err
	}
	out := make(map[ib.GUID]keys.Key, len(entries))
	for _, e := range entries {
		out[e.GUID] = e.Key
	}
	return out, nil
}

func readKeyFiles(dir string, in *keyimport.Keys) error {
	read, err := readKeyFile(dir, keys.MKey)
	if err != nil || read == nil {
		return err
	}
	in.Keys = read
	name := filepath.Join(dir, "neighbors")
	data, err := readImported(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	links, err := keyfile.ParseNeighbors(name, data)
	for _, l := range links {
		in.Behind[ib.Place{Switch: l.From.GUID, Port: l.From.Num}] = l.To.GUID
	}
	return err
}

func readImported(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxImport+1)) // the caller refuses more
}
