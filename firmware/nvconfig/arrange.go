package nvconfig

import (
	"errors"
	"fmt"
	"slices"
)

// Arrange puts items into the order of a file, as mstconfig's create_conf does:
// signatures are dropped, the component is exchanged with the first item, then
// each item that says for which adapters the file is with the second, the third
// and so on. Items that stand in that order already do not move. It refuses what
// makes no file.
func Arrange(items []Item) ([]Item, Component, error) {
	items = slices.DeleteFunc(slices.Clone(items), func(i Item) bool { return isSignature(i.Address) })
	c, err := checkItems(items)
	if err != nil {
		return nil, 0, err
	}
	first := func(i Item) bool { x, ok := componentOf(i.Address); return ok && x != FRCToken }
	if c.remote() {
		first = func(i Item) bool { return i.Address == FileItemAddress(idMACList) }
	}
	if at := slices.IndexFunc(items, first); at > 0 {
		items[0], items[at] = items[at], items[0]
	}
	next := 1
	for i := range items {
		if isApplicability(items[i].Address) && next < len(items) {
			items[i], items[next] = items[next], items[i]
			next++
		}
	}
	return items, c, checkOrder(items, c)
}

// checkItems checks each item, and which there are, whatever their order.
func checkItems(items []Item) (Component, error) {
	var errs []error
	found := []Component{}
	psids, devices, unique := 0, 0, false
	for _, i := range items {
		if err := i.Check(); err != nil {
			errs = append(errs, err)
		}
		if i.Access != Next || i.WriterHost != 0 {
			errs = append(errs, fmt.Errorf("%v: %v, writer host %d: items of a file are for the next boot, and have no writer host", i.Address, i.Access, i.WriterHost))
		}
		if c, ok := componentOf(i.Address); ok {
			found = append(found, c)
		}
		switch i.Address {
		case FileItemAddress(idApplicable):
			psids++
		case FileItemAddress(idDeviceID):
			devices++
		case FileItemAddress(idDeviceUnique):
			unique = true
		}
	}
	errs = append(errs, checkTwice(items))
	switch {
	case len(found) == 0:
		errs = append(errs, errors.New("the item that says what the file is is missing (nv_file_id_vendor, or that of a token): add one"))
	case len(found) > 1:
		errs = append(errs, fmt.Errorf("%v and %v in one file: want one", found[0], found[1]))
	}
	switch {
	case psids == 0 && devices == 0:
		errs = append(errs, errors.New("the item that says which adapters the file is for is missing: add file_applicable_to or file_device_id"))
	case psids > 0 && devices > 0:
		errs = append(errs, errors.New("file_applicable_to and file_device_id in one file: want items of one kind"))
	}
	if err := errors.Join(errs...); err != nil {
		return 0, err
	}
	return forDevices(found[0], unique), nil
}

// forDevices returns the component of a token that names its devices.
func forDevices(c Component, unique bool) Component {
	switch {
	case c == CSToken && unique:
		return CRCSToken
	case c == DebugToken && unique:
		return CRDTToken
	}
	return c
}

// checkTwice refuses a setting that is there twice: which of them counts is the
// adapter's to say. Several items may say for which adapters the file is.
func checkTwice(items []Item) error {
	seen := make(map[Address]bool)
	for _, i := range items {
		if seen[i.Address] && i.Address != FileItemAddress(idApplicable) {
			return fmt.Errorf("%v occurs twice: want it once", i.Address)
		}
		seen[i.Address] = true
	}
	return nil
}

// checkOrder refuses a file whose first items are not those that must be.
func checkOrder(items []Item, c Component) error {
	if c.remote() {
		if items[0].Address != FileItemAddress(idMACList) {
			return fmt.Errorf("%v: the list of addresses must come first", c)
		}
	} else if _, ok := componentOf(items[0].Address); !ok {
		return fmt.Errorf("%v: the item that says so must come first, and %v does", c, items[0].Address)
	}
	behind := false
	for _, i := range items[1:] {
		switch {
		case !isApplicability(i.Address):
			behind = true
		case behind:
			return fmt.Errorf("%v comes after settings: the item that says which adapters a file is for must be second", i.Address)
		}
	}
	return nil
}
