//go:build !linux

package screen

import (
	"errors"
	"os"
)

func terminalSize(*os.File) (width, height int) { return 80, 24 }

func keysAtOnce(*os.File) (restore func(), err error) {
	return nil, errors.New("drawing on terminals of this system is not supported")
}
