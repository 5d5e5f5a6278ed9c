package umad

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
)

// ModuleError means that there are InfiniBand devices but no user MAD interface.
type ModuleError struct{ Devices int }

func (e *ModuleError) Error() string {
	return fmt.Sprintf("%d InfiniBand devices but no user MAD interface: load the kernel module with \"modprobe ib_umad\"", e.Devices)
}

// NoPortError means that no port fits the options.
type NoPortError struct {
	Device   string     // wanted; empty for any
	Port     ib.PortNum // wanted; 0 for any
	Found    []string   // existing ports
	Ethernet bool       // the matching port is an Ethernet port
	Down     bool       // several fit, and none has a link
}

func (e *NoPortError) Error() string {
	var b strings.Builder
	switch {
	case e.Device != "" && e.Port != 0:
		fmt.Fprintf(&b, "%s port %d", e.Device, e.Port)
	case e.Device != "":
		b.WriteString(e.Device)
	default:
		b.WriteString("this machine")
	}
	switch {
	case e.Ethernet && e.Device == "":
		b.WriteString(" has only Ethernet ports: a subnet manager needs a port whose link layer is InfiniBand")
	case e.Ethernet:
		b.WriteString(" is an Ethernet port: a subnet manager needs a port whose link layer is InfiniBand")
	case e.Down:
		b.WriteString(" has several ports and no link on any: name one as umad:DEVICE:PORT")
	case len(e.Found) == 0:
		b.WriteString(" has no InfiniBand port: check that the adapter is seen by lspci and that its driver, for example mlx5_ib, is loaded")
	default:
		b.WriteString(" has no user MAD device")
	}
	if len(e.Found) > 0 {
		fmt.Fprintf(&b, "; there is %s", strings.Join(e.Found, ", "))
	}
	return b.String()
}

// UnfinishedError means that the kernel shows only a part of a device: it is registering the device, or removing it.
type UnfinishedError struct {
	Device  string
	Missing string
	Waited  time.Duration // that Dial waited for it
}

func (e *UnfinishedError) Error() string {
	waited := ""
	if e.Waited > 0 {
		waited = fmt.Sprintf(" after %v", e.Waited)
	}
	return fmt.Sprintf("%s is not registered whole%s: %s is missing: if it stays so, look into the kernel's log for the driver", e.Device, waited, e.Missing)
}

// OpenError means that a device file could not be opened.
type OpenError struct {
	Path string
	Err  error
}

func (e *OpenError) Unwrap() error { return e.Err }

func (e *OpenError) Error() string {
	return fmt.Sprintf("open %s: %v: %s", e.Path, e.Err, e.hint())
}

func (e *OpenError) hint() string {
	switch {
	case errors.Is(e.Err, unix.EACCES):
		return "assign the device to this user's group by a udev rule, or run as root"
	case errors.Is(e.Err, unix.EPERM):
		return "the device is in another network namespace, or the unit's DevicePolicy keeps it out"
	case errors.Is(e.Err, unix.ENOENT):
		return "the kernel has the device but /dev does not: check udev, and the container's or unit's private /dev"
	case errors.Is(e.Err, unix.ENXIO), errors.Is(e.Err, unix.ENODEV):
		return "the adapter has just gone away"
	default:
		return "check the kernel's log"
	}
}

// TakenError means that another program holds the IsSM bit of the port.
type TakenError struct{ Path string }

func (e *TakenError) Error() string {
	return fmt.Sprintf("open %s: another subnet manager runs on this port: stop it, for example OpenSM", e.Path)
}

// RegisterError means that the kernel assigned no agent for a class.
type RegisterError struct {
	Class  mad.Class
	Kernel string // version
	Err    error
}

func (e *RegisterError) Unwrap() error { return e.Err }

func (e *RegisterError) Error() string {
	return fmt.Sprintf("register for class %v with Linux %s: %v: %s", e.Class, e.Kernel, e.Err, e.hint())
}

func (e *RegisterError) hint() string {
	switch {
	case errors.Is(e.Err, unix.EINVAL):
		return "another subnet manager has the class on this port, for example OpenSM, or the port cannot manage a subnet, as a virtual function cannot; Linux 6.11.2 to 6.11.5 refuse it by a bug"
	case errors.Is(e.Err, unix.EPROTONOSUPPORT):
		return "the port has no queue pair 0, as a virtual function has none: name a port of the physical function"
	case errors.Is(e.Err, unix.EACCES), errors.Is(e.Err, unix.EPERM):
		return "a security module such as SELinux does not let this program manage the subnet"
	case errors.Is(e.Err, unix.EPIPE), errors.Is(e.Err, unix.ENODEV):
		return "the adapter has just gone away"
	case errors.Is(e.Err, unix.ENOTTY):
		return "the file is not a user MAD device"
	default:
		return "check the kernel's log"
	}
}

// UnregisteredError means that a packet's class has no agent.
type UnregisteredError struct{ Class mad.Class }

func (e *UnregisteredError) Error() string {
	return fmt.Sprintf("send packet of class %v: the port was dialed without an agent for it", e.Class)
}
