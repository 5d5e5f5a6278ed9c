package main

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"

	"github.com/coreos/go-systemd/v22/activation"
)

// socketName is the FileDescriptorName of the socket unit.
const socketName = "api"

// listen returns the listener that systemd passed, or opens the configured one.
func listen(c *config.Config) (net.Listener, error) {
	passed, err := activation.ListenersWithNames()
	if err != nil {
		return nil, fmt.Errorf("sockets passed by systemd: %w", err)
	}
	if len(passed) > 0 {
		if l := passed[socketName]; len(l) == 1 && l[0] != nil {
			return l[0], nil
		}
		return nil, command.Hint(fmt.Errorf("systemd passed sockets, but not one stream socket named %q", socketName),
			"set FileDescriptorName="+socketName+" in the socket unit")
	}
	l, err := net.Listen("tcp", c.Listen)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, command.Hint(fmt.Errorf("listen on %s: another program listens there", c.Listen),
			"stop it, or change listen in "+c.File+"; to see who it is: ss -ltnp")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, command.Hint(fmt.Errorf("listen on %s: this machine has no such address", c.Listen), "change listen in "+c.File)
	case errors.Is(err, syscall.EACCES):
		return nil, command.Hint(fmt.Errorf("listen on %s: not permitted", c.Listen),
			"ports below 1024 need a socket unit or CAP_NET_BIND_SERVICE; change listen in "+c.File)
	case err != nil:
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}
