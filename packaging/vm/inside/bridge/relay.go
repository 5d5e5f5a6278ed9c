//go:build vm

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	"portcullis/fabricsm/transport/softhca"
)

// reconnect is how long after the end of a stream it is tried again.
const reconnect = 100 * time.Millisecond

// relay carries messages between a device and a stream. When the other end of the stream goes away, the adapter is pulled.
// When the other end connects again, relay plugs the adapter in again. The other end waits until the adapter is
// unregistered before it connects again.
func relay(ctx context.Context, device, stream string) error {
	for ctx.Err() == nil {
		err := relayOnce(ctx, device, stream)
		if err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
			log.Print(err)
		}
		select {
		case <-time.After(reconnect):
		case <-ctx.Done():
		}
	}
	return nil
}

// relayOnce carries the messages of one adapter. A virtio-serial port whose other end is not open reads as ended.
func relayOnce(ctx context.Context, device, stream string) error {
	file, err := portFile(stream)
	if err != nil {
		return err
	}
	port, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	outside := softhca.NewConn(port, stream)
	defer outside.Close()
	stop := context.AfterFunc(ctx, func() { outside.Close() })
	defer stop()
	first, err := outside.Read()
	if err != nil {
		return err
	}
	inside, err := softhca.Open(ctx, device)
	if err != nil {
		return err
	}
	defer inside.Close()
	log.Printf("%s: an adapter came", file)
	defer log.Printf("%s: the adapter went", file)
	if err := inside.Write(&first); err != nil {
		return err
	}
	go func() {
		defer outside.Close()
		for {
			m, err := inside.Read()
			if err != nil || outside.Write(&m) != nil {
				return
			}
		}
	}()
	for {
		m, err := outside.Read()
		if err != nil {
			return err
		}
		// The module refuses messages for a device that it is still registering. The fabric sends the important ones again.
		if err := inside.Write(&m); err != nil && !softhca.IsRefusal(err) {
			return err
		}
	}
}

// portFile returns the file of a virtio-serial port by its name, also where no udev makes /dev/virtio-ports. A name with a
// slash is a file already.
func portFile(name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	files, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.TrimSpace(string(text)) == name {
			return filepath.Join("/dev", filepath.Base(filepath.Dir(file))), nil
		}
	}
	return "", fmt.Errorf("no virtio-serial port is called %q", name)
}
