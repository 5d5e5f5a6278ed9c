package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"portcullis/packaging/image/cpio"
)

// tree is the root file system of the image. Names are relative to the root and
// below usr/ where Debian has merged directories.
type tree struct {
	nodes map[string]node
}

// node is one file: a regular one, a link or a directory.
type node struct {
	perm uint32
	from string // file on this machine
	data []byte // content, where from is empty
	link string // target of a symbolic link
	dir  bool
	size int64
	pkg  string // package that it is from, "" for our own
}

// merged are the links of a root directory whose programs lie below usr/.
var merged = map[string]string{"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"}

func newTree() *tree {
	t := &tree{nodes: map[string]node{}}
	for name, to := range merged {
		t.nodes[name] = node{link: to}
		t.nodes[to] = node{dir: true, perm: 0o755}
	}
	return t
}

// clean returns the name of a path in the tree.
func clean(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	first, rest, more := strings.Cut(name, "/")
	if to, is := merged[first]; is && more {
		return to + "/" + rest
	}
	return name
}

func (t *tree) put(name string, n node) { t.nodes[clean(name)] = n }

// text adds a file of ours.
func (t *tree) text(name, content string) {
	t.put(name, node{perm: 0o644, data: []byte(content), size: int64(len(content))})
}

func (t *tree) dir(name string, perm uint32) { t.put(name, node{dir: true, perm: perm}) }
func (t *tree) link(name, target string)     { t.put(name, node{link: target}) }

func (t *tree) has(name string) bool {
	_, there := t.nodes[clean(name)]
	return there
}

// names returns all names, sorted, so that parents come before their content.
func (t *tree) names() []string { return slices.Sorted(maps.Keys(t.nodes)) }

// write writes the tree as a cpio archive.
func (t *tree) write(out io.Writer) error {
	w := cpio.NewWriter(out)
	for _, name := range t.names() {
		if err := t.nodes[name].write(w, name); err != nil {
			return err
		}
	}
	return w.Close()
}

func (n *node) add(w *cpio.Writer, name string) error {
	switch {
	case n.dir:
		return w.Dir(name, n.perm)
	case n.link != "":
		return w.Symlink(name, n.link)
	case n.from == "":
		return w.Bytes(name, n.perm, n.data)
	}
	f, err := os.Open(n.from)
	if err != nil {
		return err
	}
	err = w.File(name, n.perm, n.size, f)
	return errors.Join(err, f.Close())
}

func (n node) write(w *cpio.Writer, name string) error {
	if err := n.add(w, name); err != nil {
		return fmt.Errorf("initrd: %s: %w", name, err)
	}
	return nil
}
