package apply

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"portcullis/cmd/portcullis/cli"
)

const (
	// maxFile bounds a file in bytes, maxFiles their number, and maxDocuments those of one file.
	maxFile      = 4 << 20
	maxFiles     = 1000
	maxDocuments = 100_000
)

// read reads files, all files *.yaml and *.yml of directories, and standard input for "-".
func read(env *cli.Env, names []string) (*model, error) {
	m := newModel()
	files, err := expand(names)
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		data, err := env.ReadFile(name, maxFile)
		if err != nil {
			return nil, err
		}
		m.load(name, data)
	}
	return m, m.err()
}

// expand returns the files that names stand for, in their order.
func expand(names []string) ([]string, error) {
	var files []string
	for _, name := range names {
		info, err := os.Stat(name)
		switch {
		case name == "-":
			files = append(files, name)
			continue
		case err != nil:
			return nil, err
		case !info.IsDir():
			files = append(files, name)
			continue
		}
		entries, err := os.ReadDir(name)
		if err != nil {
			return nil, err
		}
		before := len(files)
		for _, e := range entries {
			if ext := filepath.Ext(e.Name()); !e.IsDir() && e.Name()[0] != '.' && (ext == ".yaml" || ext == ".yml") {
				files = append(files, filepath.Join(name, e.Name()))
			}
		}
		if len(files) == before {
			return nil, fmt.Errorf("directory %s has no file *.yaml", name)
		}
	}
	if len(files) > maxFiles {
		return nil, fmt.Errorf("%d files: at most %d", len(files), maxFiles)
	}
	if again := slices.Compact(slices.Sorted(slices.Values(files))); len(again) < len(files) {
		return nil, &cli.UsageError{Msg: "a file is named twice", Hint: "name each file once, by itself or with its directory"}
	}
	return files, nil
}
