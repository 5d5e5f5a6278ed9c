package systemd

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/coreos/go-systemd/v22/activation"

	"portcullis/cmd/portcullisd/command"
)

// socketName is the FileDescriptorName of the socket unit.
const socketName = "api"

// Listen returns the listener that systemd passed, or opens address. file is the configuration that names address.
func Listen(address, file string) (net.Listener, error) {
	passed, err := activation.ListenersWithNames()
	if err != nil {
		return nil, fmt.Errorf("sockets passed by systemd: %w", err)
	}
	return listen(passed, address, file)
}

func listen(passed map[string][]net.Listener, address, file string) (net.Listener, error) {
	if len(passed) > 0 {
		if l := passed[socketName]; len(l) == 1 && l[0] != nil {
			return l[0], nil
		}
		return nil, command.Hint(fmt.Errorf("systemd passed sockets, but not one stream socket named %q", socketName),
			"set FileDescriptorName="+socketName+" in the socket unit")
	}
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, command.Hint(fmt.Errorf("listen on %s: another program listens there", address),
			"stop it, or change listen in "+file+"; to see who it is: ss -ltnp")
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, command.Hint(fmt.Errorf("listen on %s: this machine has no such address", address), "change listen in "+file)
	case errors.Is(err, syscall.EACCES):
		return nil, command.Hint(fmt.Errorf("listen on %s: not permitted", address),
			"ports below 1024 need a socket unit or CAP_NET_BIND_SERVICE; change listen in "+file)
	case err != nil:
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}
