package predict

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"unicode/utf16"

	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
	"portcullis/attest/secureboot"
)

// Platform is what is known of the machines that boot an image.
type Platform struct {
	// Registers are the values that a boot of any image leaves in PCR 0 to 7. If there are none, only the rules of UEFI are
	// known.
	Registers []reference.Register
	// Variables are those of Secure Boot; nil if they are not known. They take precedence over Registers.
	Variables *secureboot.Variables
}

// FromLogs takes as platform what the boots of any images have in common, as
// learning does. They must have the same Secure Boot variables; these are not known
// where a log does not show them.
func FromLogs(logs ...*eventlog.Log) (Platform, error) {
	var p Platform
	hidden := false
	var boots []reference.Boot
	for i, l := range logs {
		b := reference.Boot{Log: upToSeparator(l)}
		for pcr, value := range b.Log.Replay() {
			if pcr < firmwarePCRs {
				b.Quoted = append(b.Quoted, eventlog.Quoted{PCR: pcr, Value: value})
			}
		}
		boots = append(boots, b)
		v, err := secureboot.FromLog(l)
		if err != nil {
			hidden = true
			continue
		}
		if p.Variables != nil && !slices.Equal(v.Config(), p.Variables.Config()) {
			return p, fmt.Errorf("log %d: other Secure Boot variables than in an earlier log: predict a set for each", i+1)
		}
		p.Variables = v
	}
	if hidden {
		p.Variables = nil
	}
	var err error
	p.Registers, err = reference.Learn(nil, boots)
	return p, err
}

const firmwarePCRs = 8

// upToSeparator leaves out what was measured into PCR 4 and 7 after firmware's part.
func upToSeparator(l *eventlog.Log) *eventlog.Log {
	out := &eventlog.Log{Locality: l.Locality}
	ended := map[int]bool{}
	for _, e := range l.Events {
		if (e.PCR == 4 || e.PCR == 7) && ended[e.PCR] {
			continue
		}
		ended[e.PCR] = ended[e.PCR] || e.Digest == eventlog.Separator
		out.Events = append(out.Events, e)
	}
	return out
}

// Registers returns reference values of the image's boot, of PCR 0 to 9 and 11 to 14; only
// those which the image decides, when nothing is known of the platform. phases are the
// words by which systemd-pcrphase extends PCR 11 until the agent runs, none where it does not.
func (i *Image) Registers(p Platform, phases []string) ([]reference.Register, error) {
	keys, enabled, err := i.keys(p)
	known := len(p.Registers) > 0 || p.Variables != nil
	if err != nil && known {
		return nil, fmt.Errorf("PCR 7: %w", err)
	}
	loaded, err := i.loaded(p, enabled)
	if err != nil {
		return nil, fmt.Errorf("PCR 4: %w", err)
	}
	if !known {
		if loaded, err = i.eitherLoaded(); err != nil {
			return nil, err
		}
	}
	var out []reference.Register
	for _, r := range p.Registers {
		if r.PCR < firmwarePCRs && r.PCR != 4 && r.PCR != 7 {
			out = append(out, r)
		}
	}
	out = append(out, loaded)
	if known {
		out = append(out, keys)
	}
	out = append(out, reference.Register{PCR: 8}, i.linux(), i.stub(phases), reference.Register{PCR: 12}, reference.Register{PCR: 13}, reference.Register{PCR: 14})
	slices.SortFunc(out, func(a, b reference.Register) int { return a.PCR - b.PCR })
	return out, nil
}

func position(d eventlog.Digest, note string) reference.Position {
	return reference.Position{OneOf: []eventlog.Digest{d}, Note: note}
}

// firmwarePart returns the positions of a platform's register up to its separator.
func (p *Platform) firmwarePart(pcr int) ([]reference.Position, error) {
	at := slices.IndexFunc(p.Registers, func(r reference.Register) bool { return r.PCR == pcr })
	if at < 0 {
		return nil, errors.New("the platform's registers do not have it")
	}
	events := p.Registers[at].Events
	end := slices.IndexFunc(events, func(p reference.Position) bool { return len(p.OneOf) == 1 && p.OneOf[0] == eventlog.Separator })
	if end < 0 {
		return nil, errors.New("the platform's register has no separator, or whole values instead of events")
	}
	return slices.Clone(events[:end+1]), nil
}

// callingApplication is what firmware measures before it tries boot options (TCG PC
// Client Platform Firmware Profile, EV_EFI_ACTION).
const callingApplication = "Calling EFI Application from Boot Option"

func separator() reference.Position { return position(eventlog.Separator, "EV_SEPARATOR") }

// loaded returns PCR 4: the images that firmware loads. With Secure Boot, systemd's stub has the firmware load the kernel
// without checking it, so the kernel is not measured. It is part of the image that was measured.
func (i *Image) loaded(p Platform, secureBoot bool) (reference.Register, error) {
	r := reference.Register{PCR: 4, Events: []reference.Position{
		position(sha256.Sum256([]byte(callingApplication)), "EV_EFI_ACTION "+callingApplication), separator(),
	}}
	if len(p.Registers) > 0 {
		var err error
		if r.Events, err = p.firmwarePart(4); err != nil {
			return r, err
		}
	}
	r.Events = append(r.Events, position(i.Digest, "the image"))
	if !secureBoot {
		r.Events = append(r.Events, position(i.KernelDigest, "Linux "+i.Kernel+" inside the image"))
	}
	return r, nil
}

// eitherLoaded returns PCR 4 where it is not known whether Secure Boot is enabled.
func (i *Image) eitherLoaded() (reference.Register, error) {
	r := reference.Register{PCR: 4}
	for _, secureBoot := range []bool{true, false} {
		one, err := i.loaded(Platform{}, secureBoot)
		if err != nil {
			return r, err
		}
		r.Values = append(r.Values, Value(&one))
	}
	return r, nil
}

// keys returns PCR 7: Secure Boot's variables, and the entry of db that allows the image. It also reports whether Secure
// Boot is enabled.
func (i *Image) keys(p Platform) (r reference.Register, enabled bool, err error) {
	r.PCR = 7
	switch {
	case len(p.Registers) > 0:
		if r.Events, err = p.firmwarePart(7); err != nil {
			return r, false, err
		}
	case p.Variables == nil:
		return r, false, errors.New("neither the platform's registers nor its variables are known")
	}
	if p.Variables != nil {
		if err := setVariables(&r, p.Variables); err != nil {
			return r, false, err
		}
	}
	enabled, err = secureBoot(&r)
	if err != nil || !enabled {
		return r, enabled, err
	}
	if p.Variables == nil {
		return r, enabled, errors.New("db, which decides on Secure Boot, is not known: name a file with its content, or an event log of the platform")
	}
	authority, err := p.Variables.Authority(i.image)
	if err != nil {
		return r, enabled, err
	}
	// Firmware measures an entry once, also where a driver was allowed by it before.
	if !slices.ContainsFunc(r.Events, func(p reference.Position) bool { return slices.Contains(p.OneOf, authority.Digest) }) {
		r.Events = append(r.Events, position(authority.Digest, "entry of "+authority.Name+" that allows the image"))
	}
	return r, enabled, nil
}

// setVariables has the register begin with the variables.
func setVariables(r *reference.Register, v *secureboot.Variables) error {
	config := v.Config()
	known := len(r.Events) > 0
	if known && len(r.Events) < len(config)+1 {
		return fmt.Errorf("the platform measures %d events before its separator, want Secure Boot's %d variables first", len(r.Events)-1, len(config))
	}
	var events []reference.Position
	for _, m := range config {
		events = append(events, position(m.Digest, "EV_EFI_VARIABLE_DRIVER_CONFIG "+m.Name))
	}
	if known {
		r.Events = append(events, r.Events[len(config):]...)
	} else {
		r.Events = append(events, separator())
	}
	return nil
}

// secureBoot reads from a register whether Secure Boot is enabled.
func secureBoot(r *reference.Register) (bool, error) {
	if first := r.Events[0].OneOf; len(first) == 1 {
		if enabled, known := secureboot.Enabled(first[0]); known {
			return enabled, nil
		}
	}
	return false, errors.New("the platform does not measure first whether Secure Boot is enabled")
}

// linux returns PCR 9: the measurements of the kernel's EFI stub.
func (i *Image) linux() reference.Register {
	options := make([]byte, 0, 2*len(i.Cmdline)+2)
	for _, u := range utf16.Encode([]rune(i.Cmdline + "\x00")) {
		options = append(options, byte(u), byte(u>>8))
	}
	return reference.Register{PCR: 9, Events: []reference.Position{
		position(sha256.Sum256(options), "command line, by Linux"), position(i.initrd, "initrd, by Linux"),
	}}
}

// stub returns PCR 11: the measurements of systemd's stub, and the system's phases after it.
func (i *Image) stub(phases []string) reference.Register {
	r := reference.Register{PCR: 11}
	for _, s := range i.sections {
		r.Events = append(r.Events, position(sha256.Sum256([]byte(s.name+"\x00")), "name of section "+s.name),
			position(sha256.Sum256(s.data), "section "+s.name))
	}
	if len(phases) == 0 {
		return r
	}
	// These are in no log of the firmware, so the register is held by its value.
	value := Value(&r)
	for _, word := range phases {
		value = value.Extend(sha256.Sum256([]byte(word)))
	}
	return reference.Register{PCR: 11, Values: []eventlog.Digest{value}}
}

// Value returns what the register holds, if each of its positions takes one digest; of PCR 0
// after a start from locality 0. It returns the zero digest for any other register.
func Value(r *reference.Register) eventlog.Digest {
	if len(r.Values) == 1 {
		return r.Values[0]
	}
	value := eventlog.Reset(r.PCR, 0)
	for i := range r.Events {
		if len(r.Events[i].OneOf) != 1 {
			return eventlog.Digest{}
		}
		value = value.Extend(r.Events[i].OneOf[0])
	}
	return value
}
