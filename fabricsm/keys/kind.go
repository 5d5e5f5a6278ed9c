package keys

import (
	"fmt"
	"slices"
)

// Kind is the purpose of a key. Its text is the name in OpenSM's and UFM's options.
type Kind uint8

// Kinds of keys. The first five are held by devices, one for each; SMKey and
// SAKey are the fabric's and stand under GUID 0.
const (
	MKey       Kind = iota + 1 // subnet management, classes 0x01 and 0x81
	CCKey                      // congestion control, class 0x21
	VSKey                      // vendor specific, class 0x0A
	N2NKey                     // node to node, class 0x0C: manager to node
	N2NNodeKey                 // node to node, class 0x0C: switch to switch
	SMKey                      // between subnet managers, in SMInfo
	SAKey                      // trusted requests to the Subnet Administrator, class 0x03

	endOfKinds
)

var kindNames = [endOfKinds]string{
	MKey: "m_key", CCKey: "cc_key", VSKey: "vs_key", N2NKey: "n2n_key", N2NNodeKey: "n2n_node_key",
	SMKey: "sm_key", SAKey: "sa_key",
}

// Kinds lists all kinds, those of devices first.
func Kinds() []Kind {
	return []Kind{MKey, CCKey, VSKey, N2NKey, N2NNodeKey, SMKey, SAKey}
}

// Valid reports whether k is one of the constants above.
func (k Kind) Valid() bool { return k > 0 && k < endOfKinds }

// OfDevice reports whether each device has its own key of this kind.
func (k Kind) OfDevice() bool { return k >= MKey && k <= N2NNodeKey }

// class returns the bytes under which a key is derived: the management class, and the key's number in the class. The type
// bytes 0 and 1 are those of NVIDIA's key manager; 2 is ours, for the key that shares class 0x01 with the M_Key.
func (k Kind) class() (class, typ byte) {
	switch k {
	case MKey:
		return 0x01, 0
	case CCKey:
		return 0x21, 0
	case VSKey:
		return 0x0A, 0
	case N2NKey:
		return 0x0C, 0
	case N2NNodeKey:
		return 0x0C, 1
	case SMKey:
		return 0x01, 2
	case SAKey:
		return 0x03, 0
	default:
		panic(fmt.Sprintf("keys: kind %d", uint8(k)))
	}
}

func (k Kind) String() string {
	if !k.Valid() {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the form of String.
func (k *Kind) UnmarshalText(b []byte) error {
	i := slices.Index(kindNames[1:], string(b))
	if i < 0 {
		return fmt.Errorf("kind of key %.20q: want one of %q", b, kindNames[1:])
	}
	*k = Kind(i + 1)
	return nil
}
