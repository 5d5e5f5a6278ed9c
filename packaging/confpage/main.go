// Command confpage writes the manual page portcullisd.yaml(5) out of the reference configuration of portcullisd, whose comments
// say what each key does.
//
//	go run ./packaging/confpage
package main

import (
	"fmt"
	"os"

	"portcullis/packaging/confpage/page"
)

// source and target are below the root of the repository.
const (
	source = "cmd/portcullisd/config/default.yaml"
	target = "packaging/man/portcullisd.yaml.5"
)

func main() {
	if err := write(); err != nil {
		fmt.Fprintln(os.Stderr, "confpage:", err)
		os.Exit(1)
	}
}

func write() error {
	text, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	p, err := page.Of(string(text))
	if err != nil {
		return err
	}
	return os.WriteFile(target, []byte(p), 0o644)
}
