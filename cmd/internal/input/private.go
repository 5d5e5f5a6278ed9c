package input

import (
	"fmt"
	"os"
)

// CheckPrivate refuses a key file that other users may read or write. A file that is not there is reported by its reader.
func CheckPrivate(file string) error {
	info, err := os.Stat(file)
	if err == nil && info.Mode().Perm()&0o007 != 0 {
		return fmt.Errorf("key file %s has mode %04o: other users may use it; run: chmod o= %s", file, info.Mode().Perm(), file)
	}
	return nil
}
