package path

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"portcullis/fabricsm/ib"
)

const (
	// MaxRoutesSize is the size of a file of prefix routes at most, in bytes.
	MaxRoutesSize = 1 << 20
	maxRoutes     = 4096
	maxProblems   = 50
)

// ErrTooLarge is wrapped by errors about files that are larger than they may be.
var ErrTooLarge = errors.New("too large")

// ParseRoutes reads routes to other subnets in the grammar of OpenSM's prefix-routes.conf: on each line the prefix of a
// subnet and the port GUID of the router to it, or * for either; comments after #. The first match counts, so a line after
// another one for the same prefix, or for all, is an error. All problems, at most 50, are reported together, each with its
// place as name:line.
func ParseRoutes(name string, data []byte) ([]PrefixRoute, error) {
	if len(data) > MaxRoutesSize {
		return nil, fmt.Errorf("prefix routes %s: %w: %d bytes, the most is %d", name, ErrTooLarge, len(data), MaxRoutesSize)
	}
	var routes []PrefixRoute
	var errs []error
	line := 0
	for text := range strings.Lines(string(data)) {
		line++
		text, _, _ = strings.Cut(text, "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		r, err := parseRoute(words)
		switch {
		case err != nil:
		case len(routes) == maxRoutes:
			err = fmt.Errorf("more than %d routes", maxRoutes)
		case slices.ContainsFunc(routes, func(o PrefixRoute) bool { return o.Prefix == 0 || o.Prefix == r.Prefix }):
			err = errors.New("a line before this one is for the same subnets and counts; leave one out")
		default:
			routes = append(routes, r)
			continue
		}
		if errs = append(errs, fmt.Errorf("%s:%d: %w", name, line, err)); len(errs) == maxProblems {
			break
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return routes, nil
}

func parseRoute(words []string) (r PrefixRoute, err error) {
	if len(words) != 2 {
		return r, fmt.Errorf("%d words: want the prefix of a subnet, or *, and the port GUID of a router, or *", len(words))
	}
	if words[0] != "*" {
		if r.Prefix, err = ib.ParsePrefix(words[0]); err != nil {
			return r, err
		}
		if r.Prefix == 0 || r.Prefix == ib.DefaultPrefix || r.Prefix>>56 == 0xFF {
			return r, fmt.Errorf("%v is the prefix of no other subnet", r.Prefix)
		}
	}
	if words[1] != "*" {
		if r.Router, err = ib.ParseGUID(words[1]); err != nil {
			return r, err
		}
		if !r.Router.Valid() {
			return r, fmt.Errorf("no port has the GUID %v", r.Router)
		}
	}
	return r, nil
}
