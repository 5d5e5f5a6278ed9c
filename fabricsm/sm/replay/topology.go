package replay

import (
	"encoding/json"
	"errors"
	"fmt"

	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/topospec"
)

// topologySetName is the type of the input that puts a declared topology into force.
// Like that of a configuration, it is written as the revision it was compiled from.
const topologySetName = "sm.TopologySet"

// declared is the written form of a declared topology and its mode.
type declared struct {
	Revision *topospec.Revision `json:",omitempty"` // nil: none
	Digest   topospec.Digest
	Mode     topospec.Mode
	Back     bool   `json:",omitempty"`
	By       string `json:",omitempty"` // of an input
}

// writeDeclared returns the written form of a topology. The error reports a revision that cannot be written and read back.
func writeDeclared(in *sm.TopologySet) (*declared, error) {
	d := &declared{Mode: in.Mode, Back: in.Back, By: in.By}
	if in.Spec == nil {
		return d, nil
	}
	d.Revision, d.Digest = in.Spec.Revision(), in.Spec.Digest()
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("write the declared topology down: %w", err)
	}
	if len(data) > maxFrame/2 {
		return nil, errors.New("write the declared topology down: it is too large")
	}
	var again declared
	if err := json.Unmarshal(data, &again); err != nil {
		return nil, fmt.Errorf("write the declared topology down: %w", err)
	}
	if again.Revision.Digest() != d.Digest {
		return nil, errors.New("write the declared topology down: part of it has no written form")
	}
	return d, nil
}

// spec compiles the written revision; nil: none.
func (d *declared) spec() (*topospec.Spec, error) {
	if d.Revision == nil {
		return nil, nil
	}
	s, err := topospec.Compile("record", d.Revision)
	if err != nil {
		return nil, fmt.Errorf("declared topology of the record: %w", err)
	}
	if s.Digest() != d.Digest {
		return nil, fmt.Errorf("declared topology of the record: its digest is %s, want %s", s.Digest().Short(), d.Digest.Short())
	}
	return s, nil
}

// writeTopologySet returns the written form of an input.
func writeTopologySet(in *sm.TopologySet) ([]byte, error) {
	d, err := writeDeclared(in)
	if err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

// readTopologySet makes the input of its written form.
func readTopologySet(data []byte) (sm.Input, error) {
	var d declared
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	spec, err := d.spec()
	if err != nil {
		return nil, err
	}
	return &sm.TopologySet{Spec: spec, Mode: d.Mode, By: d.By, Back: d.Back}, nil
}
