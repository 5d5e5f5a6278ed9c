package nvconfig

import (
	"cmp"
	"slices"
)

// Layout is what the data of an item holds.
type Layout struct {
	Name   string // as the vendor's tools call it
	Class  Class  // of the family: Port stands for AllPorts too
	Index  uint32
	Size   int // of the data in bytes
	Fields []Field
	// Whole says that the fields are all there is to the item: the rest is
	// reserved, so that the item can be written without reading it first.
	Whole bool
}

// Kind says how a field is written as text.
type Kind uint8

// Kinds of fields.
const (
	Flag   Kind = iota + 1 // False or True
	Enum                   // a word of Values
	Number                 // decimal
	Hex                    // 0x and digits, as wide as the field
	GUID                   // 64 bits, as ib.GUID
	Text                   // ASCII, filled up with zeros
	UUIDs                  // 128 bits, as UUID
)

// Field is one parameter of an item.
type Field struct {
	// Name is that of the parameter, as mstconfig shows it. The tools do not show a few fields; their names here are ours.
	Name string
	Kind Kind
	// Bit is the place of the field's first (most significant) bit, counted from
	// the first bit of the data: bit 31 of dword 0 is 0. Width is in bits.
	Bit, Width int
	Values     []Value // of an Enum
	// Valid names the flag of the same item without which the adapter ignores the field; empty: none.
	Valid string
}

// Value is a word for a number.
type Value struct {
	Name   string
	Number uint64
}

// at returns the place of bits high to low of a dword, as layouts are published.
func at(dword, high, low int) (bit, width int) { return dword*32 + 31 - high, high - low + 1 }

func flag(name string, dword, bit int) Field {
	b, w := at(dword, bit, bit)
	return Field{Name: name, Kind: Flag, Bit: b, Width: w}
}

// enum returns a field of the first dword, where all of them are.
func enum(name string, high, low int, values []Value) Field {
	b, w := at(0, high, low)
	return Field{Name: name, Kind: Enum, Bit: b, Width: w, Values: values}
}

func number(name string, kind Kind, dword, high, low int) Field {
	b, w := at(dword, high, low)
	return Field{Name: name, Kind: kind, Bit: b, Width: w}
}

// validBy says which flag makes a field count.
func (f Field) validBy(flag string) Field { f.Valid = flag; return f }

// words names the values 0, 1, 2, ...
func words(names ...string) (v []Value) {
	for i, name := range names {
		v = append(v, Value{name, uint64(i)})
	}
	return v
}

// itemKey finds a layout.
type itemKey struct {
	family Class
	index  uint32
}

func (a Address) key() itemKey { return itemKey{a.Class().Family(), a.Index()} }

var byAddress, byParameter = indexLayouts()

func indexLayouts() (map[itemKey]*Layout, map[string]Parameter) {
	items, params := make(map[itemKey]*Layout), make(map[string]Parameter)
	for i := range layouts {
		l := &layouts[i]
		items[itemKey{l.Class, l.Index}] = l
		for _, f := range l.Fields {
			params[f.Name] = Parameter{l, f}
		}
	}
	return items, params
}

// LayoutOf returns the layout of an item, if this package has it.
func LayoutOf(a Address) (*Layout, bool) { l, ok := byAddress[a.key()]; return l, ok }

// Layouts returns all layouts, ordered by class and index.
func Layouts() []Layout {
	return slices.SortedFunc(slices.Values(layouts), func(a, b Layout) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Index, b.Index))
	})
}

// Parameter is a field and the item it is in.
type Parameter struct {
	Item  *Layout
	Field Field
}

// LookUp finds a parameter by its name.
func LookUp(name string) (Parameter, bool) { p, ok := byParameter[name]; return p, ok }
