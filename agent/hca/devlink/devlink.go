// Package devlink asks an adapter's driver over generic netlink for its facts about the adapter: serial number, PSID, and
// the firmware versions that run and that are stored in flash. A stored version other than the running one waits for a
// reset. Nothing is written; no privilege is needed.
//
// Source: Linux include/uapi/linux/devlink.h, Documentation/networking/devlink/devlink-info.rst and mlx5.rst.
package devlink

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
)

// Commands and attributes of the family.
const (
	familyName = "devlink"
	commandGet = 51 // DEVLINK_CMD_INFO_GET

	attrBus            = 1
	attrDevice         = 2
	attrDriver         = 98
	attrSerial         = 99
	attrVersionFixed   = 100
	attrVersionRunning = 101
	attrVersionStored  = 102
	attrVersionName    = 103
	attrVersionValue   = 104
	attrBoardSerial    = 146
)

// Info is the driver's report about one adapter. A field that the driver does not report is empty.
type Info struct {
	Bus, Device string // for example pci, 0000:17:00.0
	Driver      string
	Serial      string
	BoardSerial string
	Fixed       map[string]string // versions that never change, by name
	Running     map[string]string
	Stored      map[string]string
}

// Names of versions that mlx5_core has.
const (
	versionPSID = "fw.psid"
	versionFW   = "fw.version"
)

// PSID is the parameter set of the board.
func (i *Info) PSID() string { return i.Fixed[versionPSID] }

// RunningFirmware is the version that runs.
func (i *Info) RunningFirmware() string { return i.Running[versionFW] }

// StoredFirmware is the version that runs after the next reset.
func (i *Info) StoredFirmware() string { return i.Stored[versionFW] }

// Conn is a connection to the kernel. It is not safe for use by two at once.
type Conn struct {
	conn   *genetlink.Conn
	family genetlink.Family
}

// ErrNone means that the kernel has no devlink.
var ErrNone = errors.New("the kernel has no devlink")

// answerTime bounds the wait for the kernel, which has firmware to ask.
const answerTime = 10 * time.Second

// Dial connects to the kernel.
func Dial() (*Conn, error) {
	c, err := genetlink.Dial(nil)
	if err != nil {
		return nil, fmt.Errorf("devlink: %w", err)
	}
	if err := c.SetDeadline(time.Now().Add(answerTime)); err != nil {
		c.Close()
		return nil, fmt.Errorf("devlink: %w", err)
	}
	d, err := open(c)
	if err != nil {
		c.Close()
		return nil, err
	}
	return d, nil
}

func open(c *genetlink.Conn) (*Conn, error) {
	family, err := c.GetFamily(familyName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("devlink: %w", err)
	}
	return &Conn{c, family}, nil
}

// Close ends the connection.
func (c *Conn) Close() error { return c.conn.Close() }

// Info asks for an adapter: bus pci, device 0000:17:00.0.
func (c *Conn) Info(bus, device string) (*Info, error) {
	e := netlink.NewAttributeEncoder()
	e.String(attrBus, bus)
	e.String(attrDevice, device)
	data, err := e.Encode()
	if err != nil {
		return nil, fmt.Errorf("devlink %s/%s: %w", bus, device, err)
	}
	request := genetlink.Message{Header: genetlink.Header{Command: commandGet, Version: c.family.Version}, Data: data}
	answers, err := c.conn.Execute(request, c.family.ID, netlink.Request)
	if err != nil {
		return nil, fmt.Errorf("devlink %s/%s: %w", bus, device, err)
	}
	if len(answers) != 1 {
		return nil, fmt.Errorf("devlink %s/%s: %d answers, want one", bus, device, len(answers))
	}
	i, err := Parse(answers[0].Data)
	if err != nil {
		return nil, fmt.Errorf("devlink %s/%s: %w", bus, device, err)
	}
	if i.Bus != bus || i.Device != device {
		return nil, fmt.Errorf("devlink %s/%s: the answer is about %s/%s", bus, device, i.Bus, i.Device)
	}
	return i, nil
}

// Limits of an answer.
const (
	maxText     = 256 // characters
	maxVersions = 64  // of each kind
)

// Parse reads the attributes of an answer.
func Parse(data []byte) (*Info, error) {
	d, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return nil, err
	}
	i := &Info{Fixed: map[string]string{}, Running: map[string]string{}, Stored: map[string]string{}}
	seen := map[uint16]bool{}
	texts := map[uint16]*string{
		attrBus: &i.Bus, attrDevice: &i.Device, attrDriver: &i.Driver, attrSerial: &i.Serial, attrBoardSerial: &i.BoardSerial,
	}
	versions := map[uint16]map[string]string{attrVersionFixed: i.Fixed, attrVersionRunning: i.Running, attrVersionStored: i.Stored}
	for d.Next() {
		kind := d.Type()
		if into, ok := texts[kind]; ok {
			if seen[kind] {
				return nil, fmt.Errorf("attribute %d comes twice", kind)
			}
			seen[kind] = true
			if *into, err = text(kind, d.Bytes()); err != nil {
				return nil, err
			}
		}
		if into, ok := versions[kind]; ok {
			if err := version(into, d.Bytes()); err != nil {
				return nil, err
			}
		}
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	return i, nil
}

// version reads a nested pair of name and value.
func version(into map[string]string, data []byte) error {
	d, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return err
	}
	pair := map[uint16]string{}
	for d.Next() {
		kind := d.Type()
		if kind != attrVersionName && kind != attrVersionValue {
			continue
		}
		if _, twice := pair[kind]; twice {
			return fmt.Errorf("attribute %d comes twice in a version", kind)
		}
		if pair[kind], err = text(kind, d.Bytes()); err != nil {
			return err
		}
	}
	if err := d.Err(); err != nil {
		return err
	}
	name := pair[attrVersionName]
	if _, twice := into[name]; twice || name == "" || len(into) == maxVersions {
		return fmt.Errorf("version %q comes twice or has no name, or there are too many", name)
	}
	into[name] = pair[attrVersionValue]
	return nil
}

// text reads a string that ends with NUL.
func text(kind uint16, b []byte) (string, error) {
	s, ended := strings.CutSuffix(string(b), "\x00")
	odd := strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
	if !ended || odd || len(s) > maxText {
		return "", fmt.Errorf("attribute %d is not a line of printable ASCII of at most %d characters", kind, maxText)
	}
	return s, nil
}
