package firmware

import (
	"bytes"
	"errors"
	"io"

	"portcullis/firmware/image"
	"portcullis/firmware/mfa2"
)

// Image is one image of a file.
type Image struct {
	Index  int          // in its package; 0 where the file is the image
	Boards []string     // PSIDs that the package has it for; printable
	Size   int64        // bytes
	Image  *image.Image // nil: Err says why. It may be read until the callback returns
	Err    error        // image.ErrUnknown or an image.LayoutError
}

// Packed reports whether a file is a package.
func Packed(r io.ReaderAt, size int64) bool { return mfa2.IsPackage(r, size) }

// Images calls f with each image of a file of size bytes, one in memory at a time.
// A package that is damaged is an mfa2.FormatError. An error of f ends it.
func Images(r io.ReaderAt, size int64, f func(*Image) error) error {
	if !Packed(r, size) {
		return one(r, &Image{Size: size}, f)
	}
	p, err := mfa2.Open(r, size)
	if err != nil {
		return err
	}
	return p.Each(func(c mfa2.Component, b []byte) error {
		return one(bytes.NewReader(b), &Image{Index: c.Index, Boards: c.PSIDs, Size: c.Size}, f)
	})
}

func one(r io.ReaderAt, i *Image, f func(*Image) error) error {
	i.Image, i.Err = image.Open(r, i.Size)
	if i.Err != nil && !image.IsLayout(i.Err) && !errors.Is(i.Err, image.ErrUnknown) {
		return i.Err
	}
	return f(i)
}
