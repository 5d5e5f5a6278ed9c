package trust

import (
	"bytes"
	"strings"
)

// nameSize is the size of ServiceRecord.ServiceName in bytes.
const nameSize = 64

// ServiceName gives a ServiceName up to its first NUL.
func ServiceName(field []byte) string {
	name, _, _ := bytes.Cut(field, []byte{0})
	return string(name)
}

// reserved reports a name that begins like one of those that are reserved.
func (o *Options) reserved(name string) bool {
	for _, p := range o.ReservedNames {
		if len(name) >= len(p) && strings.EqualFold(name[:len(p)], p) {
			return true
		}
	}
	return false
}
