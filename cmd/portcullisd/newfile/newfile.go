// Package newfile writes files that must not exist, whole or not at all.
package newfile

import (
	"errors"
	"io/fs"
	"os"
)

// Write writes a file that must not exist and flushes it to disk. It removes a file that it could not write whole.
func Write(path string, data []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if _, err = f.Write(data); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
