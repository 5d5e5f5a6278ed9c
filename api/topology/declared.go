package topology

import (
	"context"

	"portcullis/api/store"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// Switches returns how many external ports each switch of a topology has, 0 where that is not said.
func Switches(spec *topospec.Spec) map[ib.GUID]int {
	out := map[ib.GUID]int{}
	for i := range spec.Revision().Devices {
		d := &spec.Revision().Devices[i]
		if d.Kind != topospec.KindSwitch {
			continue
		}
		ports := 0
		for range spec.PortsOf(spec.DeviceByGUID(d.GUID)) {
			ports++
		}
		out[d.GUID] = ports
	}
	return out
}

// DeclaredSwitches is Switches of the revision in force, nil without one.
func (s *Service) DeclaredSwitches(ctx context.Context, r store.Reader) (map[ib.GUID]int, error) {
	spec, err := s.InForce(ctx, r)
	if err != nil || spec == nil {
		return nil, err
	}
	return Switches(spec), nil
}

// InForce returns the revision in force as of a snapshot, nil without one.
func (s *Service) InForce(ctx context.Context, r store.Reader) (*topospec.Spec, error) {
	b, err := s.load(ctx, r)
	if err != nil {
		return nil, err
	}
	return s.activeContent(ctx, r, b)
}
