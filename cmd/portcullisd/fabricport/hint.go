package fabricport

import (
	"errors"

	"portcullis/fabricsm/transport/ibsim"
)

// Hint says what to do about a port that cannot be opened, which is named by
// the option or key given; "" when the error
// says so itself.
func Hint(err error, named string) string {
	if _, ok := errors.AsType[*ibsim.NotRunningError](err); ok {
		return "start the simulator (portcullis-sim run), or change " + named
	}
	if e, ok := errors.AsType[*ibsim.RefusedError](err); ok && e.AsSM {
		return "the simulator knows no such node, or another subnet manager sits there: see " + named
	}
	return ""
}
