// Package version says which build of Portcullis a program is.
package version

import (
	"runtime"
	"runtime/debug"
)

// tag is what `git describe` said when the program was built; the Makefile
// sets it through the linker and nothing else may. It is empty in a program
// built by a bare `go build`.
var tag string

// String returns the version in one line without a newline, such as
// "v0.3.1 (go1.26.8 linux/amd64)". A build without a tag is named by its
// commit ("0123456789ab", with "-dirty" when the tree had changes), and
// one without either is "devel".
func String() string {
	return Short() + " (" + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + ")"
}

// Short returns the version alone, without the toolchain: the first word
// of String.
func Short() string {
	if tag != "" {
		return tag
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	return commit(info.Settings)
}

// commit names a build by the go command's record of its checkout.
func commit(settings []debug.BuildSetting) string {
	revision, dirty := "", ""
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			revision = s.Value
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "-dirty"
			}
		}
	}
	if revision == "" {
		return "devel"
	}
	return revision[:min(12, len(revision))] + dirty
}
