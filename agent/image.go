package agent

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

const maxOSRelease = 64 << 10

// image is the identity of the image this host was booted from: as configured,
// else IMAGE_ID and IMAGE_VERSION of os-release(5), joined by a hyphen, else "".
// It is measured before anything else, and must not change during a boot.
func (c *Config) image() (string, error) {
	if c.Image != "" {
		return c.Image, nil
	}
	f, err := os.Open(c.OSRelease)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fail(ClassOther, "make the file readable, or set image in the configuration", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxOSRelease))
	if err != nil {
		return "", fail(ClassOther, "make the file readable, or set image in the configuration", err)
	}
	return imageOf(b), nil
}

func imageOf(release []byte) string {
	var parts []string
	for _, key := range []string{"IMAGE_ID=", "IMAGE_VERSION="} {
		for line := range bytes.Lines(release) {
			if v, ok := strings.CutPrefix(strings.TrimSpace(string(line)), key); ok {
				parts = append(parts, strings.Trim(v, `"'`))
				break
			}
		}
	}
	return strings.Join(parts, "-")
}
