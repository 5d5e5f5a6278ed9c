//go:build !linux

package main

import (
	"errors"
	"os"
)

// isTerminal is false: sm top draws on Linux only, and prints once elsewhere.
func isTerminal(*os.File) bool { return false }

func terminalSize(*os.File) (width, height int) { return 80, 24 }

func keysAtOnce(*os.File) (restore func(), err error) {
	return nil, errors.New("drawing on terminals of this system is not supported")
}
