package movein

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/opensmconf/movein"
	"portcullis/fabricsm/vault"
)

const (
	maxFiles = 512       // of one directory of a site
	maxTotal = 256 << 20 // of all files of a site, in bytes
)

// ufmFolders are the folders below UFM's directory that have files of its OpenSM.
var ufmFolders = []string{"opensm", "conf", "conf/opensm"}

// readSite reads the regular files of a directory and of the cache, without those below. The directory counts first.
func readSite(env *cli.Env, kind movein.Kind, dir, cache string) (*movein.Site, error) {
	site := &movein.Site{Kind: kind, Files: make(map[string][]byte)}
	dirs := []string{dir}
	if kind == movein.UFM {
		for _, name := range ufmFolders {
			if below := filepath.Join(dir, name); isFolder(below) {
				dirs = append(dirs, below)
			}
		}
	}
	if cache != "" {
		dirs = append(dirs, cache)
	}
	for _, d := range dirs {
		if err := readFolder(env, d, site.Files); err != nil {
			return nil, err
		}
	}
	return site, nil
}

func isFolder(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func readFolder(env *cli.Env, dir string, files map[string][]byte) error {
	total := int64(0)
	for _, data := range files {
		total += int64(len(data))
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(list) > maxFiles {
		return cli.Hint(fmt.Errorf("%s has %d files, the most is %d", dir, len(list), maxFiles), "copy the files of the manager into a directory of their own")
	}
	for _, e := range list {
		name := filepath.Join(dir, e.Name())
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a link to nothing
		}
		if err != nil {
			return err
		}
		if _, twice := files[e.Name()]; twice || !info.Mode().IsRegular() {
			continue
		}
		if total += info.Size(); total > maxTotal {
			return cli.Hint(fmt.Errorf("the files in %s and those before have more than %d bytes", dir, maxTotal), "copy the files of the manager into a directory of their own")
		}
		if info.Size() > movein.MaxFile {
			total -= info.Size()
			fmt.Fprintf(env.Err, "portcullis: left out: %s: more than %d bytes\n", cli.Plain(name), movein.MaxFile)
			continue
		}
		if files[e.Name()], err = env.ReadFile(name, movein.MaxFile); err != nil {
			return err
		}
	}
	return nil
}

// write writes the files of a plan into a new directory. The configuration is the last: without it the directory is not
// whole.
func write(dir string, p *movein.Plan) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return cli.Hint(fmt.Errorf("%s exists already", dir), "nothing was written; name a new directory")
		}
		return err
	}
	if p.Root {
		secret, err := vault.NewSecret(rand.Reader)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(dir, movein.RootName), secret, 0o600); err != nil {
			return err
		}
	}
	const last = "portcullisd.yaml"
	for _, whole := range []bool{false, true} {
		for i := range p.Files {
			f := &p.Files[i]
			if (f.Name == last) != whole {
				continue
			}
			name := filepath.Join(dir, filepath.FromSlash(f.Name))
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				return err
			}
			mode := fs.FileMode(0o644)
			if f.Secret {
				mode = 0o600
			}
			if err := writeFile(name, f.Data, mode); err != nil {
				return cli.Hint(err, "the directory "+dir+" is not whole: remove it")
			}
		}
	}
	return nil
}

// writeFile writes a file that was not there, whole and durable.
func writeFile(name string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
