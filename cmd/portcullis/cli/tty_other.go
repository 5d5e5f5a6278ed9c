//go:build !linux

package cli

import "os"

// IsTerminal is false: sm top draws on Linux only, and prints once elsewhere.
func IsTerminal(*os.File) bool { return false }
