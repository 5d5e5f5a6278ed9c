package route

import "portcullis/fabricsm/topo"

// CheckEveryLID judges as Check does, but walks each LID.
func CheckEveryLID(f *topo.Fabric, t *Tables) Report {
	r, _ := check(f, t, true)
	return r
}
