package nvconfig

import "fmt"

// Class says what an item is about, and how the rest of its address is cut
// (bits 31-24 of dword 1).
type Class uint8

// Classes of items.
const (
	Global            Class = 0x00 // the whole adapter
	Port              Class = 0x01 // one port
	HostFunction      Class = 0x03 // one function of one host
	FileItem          Class = 0x06 // about the file that carries it
	Host              Class = 0x07 // one host
	Switch            Class = 0x08
	Module            Class = 0x09
	HostAllFunctions  Class = 0x43 // all functions of one host
	AllPorts          Class = 0x81
	AllHostsFunction  Class = 0x83 // one function of all hosts
	AllHostsFunctions Class = 0xC3 // all functions of all hosts
)

var classNames = map[Class]string{
	Global: "global", Port: "port", HostFunction: "host function", FileItem: "file", Host: "host",
	Switch: "switch", Module: "module", HostAllFunctions: "all functions of a host", AllPorts: "all ports",
	AllHostsFunction: "a function of all hosts", AllHostsFunctions: "all functions of all hosts",
}

// Known reports a class that this package can take apart.
func (c Class) Known() bool { _, ok := classNames[c]; return ok }

func (c Class) String() string {
	if name, ok := classNames[c]; ok {
		return name
	}
	return fmt.Sprintf("class 0x%02x", uint8(c))
}

// Family is the class of one port, host or function for a class that stands for
// all of them: items of one family share their indices.
func (c Class) Family() Class {
	switch c {
	case AllPorts:
		return Port
	case HostAllFunctions, AllHostsFunction, AllHostsFunctions:
		return HostFunction
	default:
		return c
	}
}

// Address is what an item is called: dword 1 of its header, big-endian.
type Address uint32

// GlobalItem returns the address of an item about the whole adapter, index 0 to 2^24-1.
func GlobalItem(index uint32) Address { return cut(Global, index&0xFFFFFF) }

// FileItemAddress returns the address of an item about the file, index 0 to 2^24-1.
func FileItemAddress(index uint32) Address { return cut(FileItem, index&0xFFFFFF) }

// PortItem returns the address of an item of one port, from 1.
func PortItem(port uint8, index uint16) Address {
	return cut(Port, uint32(port)<<16|uint32(index))
}

// AllPortsItem returns the address of an item of all ports.
func AllPortsItem(index uint16) Address { return cut(AllPorts, uint32(index)) }

// HostItem returns the address of an item of one host, 0 to 63, index 0 to 2^18-1.
func HostItem(host uint8, index uint32) Address {
	return cut(Host, uint32(host&0x3F)<<18|index&0x3FFFF)
}

// FunctionItem returns the address of an item of one function (0 to 255) of one host (0 to 63), index 0 to 1023.
func FunctionItem(host, function uint8, index uint16) Address {
	return cut(HostFunction, uint32(host&0x3F)<<18|uint32(function)<<10|uint32(index&0x3FF))
}

// AllFunctionsItem returns the address of an item of all functions of all hosts, index 0 to 1023.
func AllFunctionsItem(index uint16) Address { return cut(AllHostsFunctions, uint32(index&0x3FF)) }

func cut(c Class, rest uint32) Address { return Address(uint32(c)<<24 | rest) }

// Class returns bits 31-24.
func (a Address) Class() Class { return Class(a >> 24) }

// Index is the number of the item in its class.
func (a Address) Index() uint32 {
	switch a.Class().Family() {
	case Port:
		return uint32(a) & 0xFFFF
	case HostFunction:
		return uint32(a) & 0x3FF
	case Host:
		return uint32(a) & 0x3FFFF
	case Module:
		return uint32(a) & 0x3FFF
	default:
		return uint32(a) & 0xFFFFFF
	}
}

// Port is the port of an item of ports; 0 for all of them, and for items of other classes.
func (a Address) Port() uint8 {
	if a.Class().Family() != Port {
		return 0
	}
	return uint8(a >> 16)
}

// Host is the host of an item of hosts or functions, else 0.
func (a Address) Host() uint8 {
	if f := a.Class().Family(); f != HostFunction && f != Host {
		return 0
	}
	return uint8(a>>18) & 0x3F
}

// Function is the function of an item of functions, else 0.
func (a Address) Function() uint8 {
	if a.Class().Family() != HostFunction {
		return 0
	}
	return uint8(a >> 10)
}

// Module is the module of an item of modules, else 0.
func (a Address) Module() uint16 {
	if a.Class() != Module {
		return 0
	}
	return uint16(a>>14) & 0x3FF
}

// Check refuses an address of no known class, and one that names a port, host or
// function where its class stands for all of them.
func (a Address) Check() error {
	c := a.Class()
	switch {
	case !c.Known():
		return fmt.Errorf("item 0x%08x: class 0x%02x is unknown", uint32(a), uint8(c))
	case c == Port && a.Port() == 0:
		return fmt.Errorf("item 0x%08x: ports count from 1", uint32(a))
	case c == AllPorts && a.Port() != 0,
		(c == AllHostsFunction || c == AllHostsFunctions) && a.Host() != 0,
		(c == HostAllFunctions || c == AllHostsFunctions) && a.Function() != 0:
		return fmt.Errorf("item 0x%08x: it names all and one: the bits of what it names as all must be 0", uint32(a))
	}
	return nil
}

// String returns class, target and index, for example "port 1 item 18".
func (a Address) String() string {
	target := ""
	switch c := a.Class(); c {
	case Port:
		target = fmt.Sprintf("port %d", a.Port())
	case Host, HostAllFunctions:
		target = fmt.Sprintf("host %d", a.Host())
		if c == HostAllFunctions {
			target += " all functions"
		}
	case HostFunction:
		target = fmt.Sprintf("host %d function %d", a.Host(), a.Function())
	case AllHostsFunction:
		target = fmt.Sprintf("all hosts function %d", a.Function())
	case Module:
		target = fmt.Sprintf("module %d", a.Module())
	default:
		target = c.String()
	}
	return fmt.Sprintf("%s item %d", target, a.Index())
}

// MarshalText implements encoding.TextMarshaler: for people, as String.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }
