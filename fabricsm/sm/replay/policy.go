package replay

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"portcullis/fabricsm/route"
	"portcullis/fabricsm/sm"
)

// policyName is the type of the input that changes a configuration. It is written like a configuration: engines apart, with
// all content of their files.
const policyName = "sm.PolicySet"

// policyForm is the JSON form of an sm.PolicySet.
type policyForm struct {
	Policy  policy
	Anew    bool // engines replace those before
	Engines []engine
}

type policy struct {
	sm.Policy
	Engines *struct{} `json:",omitempty"`
}

// engine is a routing engine with its options. The content of its files is part of these, so that the files are not needed
// again.
type engine struct {
	Name    string
	Options json.RawMessage
}

// writeEngines returns the written form of engines. An error names an engine that cannot be written.
func writeEngines(engines []route.Engine) (list []engine, err error) {
	for _, e := range engines {
		options, err := json.Marshal(e)
		if err == nil {
			var back route.Engine
			if back, err = Engine(e, options); err == nil && !reflect.DeepEqual(back, e) {
				err = errors.New("part of its options has no written form")
			}
		}
		if err != nil {
			return nil, fmt.Errorf("write routing engine %s down: %w", e.Name(), err)
		}
		list = append(list, engine{Name: e.Name(), Options: options})
	}
	return list, nil
}

// readEngines makes the engines of a record.
func readEngines(list []engine, engines Engines) (made []route.Engine, err error) {
	for _, e := range list {
		one, err := engines(e.Name, e.Options)
		if err != nil {
			return nil, fmt.Errorf("routing engine %s of the record: %w", e.Name, err)
		}
		made = append(made, one)
	}
	return made, nil
}

// writePolicy returns the written form of a changed configuration.
func writePolicy(in *sm.PolicySet) ([]byte, error) {
	list, err := writeEngines(in.Policy.Engines)
	if err != nil {
		return nil, err
	}
	form := policyForm{Anew: in.Policy.Engines != nil, Engines: list}
	form.Policy.Policy = in.Policy
	form.Policy.Policy.Engines = nil
	data, err := json.Marshal(form)
	if err != nil {
		return nil, err
	}
	var back policyForm
	if err := json.Unmarshal(data, &back); err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(back.Policy, form.Policy) {
		return nil, errors.New("part of it has no written form")
	}
	return data, nil
}

// readPolicy makes the input of its written form.
func readPolicy(data []byte, engines Engines) (sm.Input, error) {
	var form policyForm
	if err := json.Unmarshal(data, &form); err != nil {
		return nil, err
	}
	in := &sm.PolicySet{Policy: form.Policy.Policy}
	made, err := readEngines(form.Engines, engines)
	if err != nil {
		return nil, err
	}
	if form.Anew {
		in.Policy.Engines = append([]route.Engine{}, made...)
	}
	return in, nil
}
