package native

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// format is the first key of a file.
const format = "portcullis-topospec/1"

// Parse reads a sealed revision, in JSON if it begins with "{", else in YAML. name
// is what problems call the input; all are reported together, up to
// topospec.MaxProblems.
func Parse(name string, data []byte) (*topospec.Revision, error) { return parse(name, data, true) }

// ParseDraft reads a revision as Parse does, but one that is still being worked on:
// its end, if it is there, need not have the digest.
func ParseDraft(name string, data []byte) (*topospec.Revision, error) {
	return parse(name, data, false)
}

func parse(name string, data []byte, sealed bool) (*topospec.Revision, error) {
	p := topospec.Problems{Source: name}
	if len(data) > maxSize {
		p.Add(0, "", fmt.Sprintf("%d bytes, the most is %d", len(data), maxSize), "")
		return nil, p.Err()
	}
	if len(strings.TrimSpace(string(data))) == 0 {
		p.Add(0, "", "empty: it would disable the whole fabric", "check that the file is the one you meant")
		return nil, p.Err()
	}
	tree, err := parseTree(data)
	if err != nil {
		line := 0
		if e, ok := errors.AsType[*syntaxError](err); ok {
			line = e.line
		}
		p.Add(line, "", strings.ReplaceAll(err.Error(), "\n", " "), "")
		return nil, p.Err()
	}
	return revision(name, &tree, sealed)
}

func parseTree(data []byte) (value, error) {
	if strings.HasPrefix(string(data[:min(3, len(data))]), "\uFEFF") {
		return value{}, &syntaxError{1, "it begins with a byte order mark: save it as plain UTF-8 without one"}
	}
	if strings.HasPrefix(strings.TrimLeft(string(data[:min(64, len(data))]), " \t\r\n"), "{") {
		return parseJSON(string(data))
	}
	return parseYAML(data)
}

// ending is the summary at the end of a file.
type ending struct {
	devices, links int
	digest         topospec.Digest
}

func revision(name string, tree *value, sealed bool) (*topospec.Revision, error) {
	r := &reader{topospec.Problems{Source: name}}
	rev, end, was := &topospec.Revision{}, ending{}, ""
	r.table(tree, "", []field{
		{"format", r.string(&was)},
		{"revision", number(r, &rev.Number, math.MaxUint64)},
		{"parent", r.named(&rev.Parent)},
		{"fabric", r.string(&rev.Fabric)},
		{"policy", func(v *value, o string) { r.policy(v, o, &rev.Policy) }},
		{"devices", func(v *value, o string) {
			r.list(v, o, topospec.MaxDevices, func(v *value, _ string) { rev.Devices = append(rev.Devices, r.device(v)) })
		}},
		{"links", func(v *value, o string) {
			r.list(v, o, topospec.MaxLinks, func(v *value, _ string) { rev.Links = append(rev.Links, r.link(v)) })
		}},
		{"end", func(v *value, o string) {
			r.table(v, o, []field{
				{"devices", number(r, &end.devices, topospec.MaxDevices)},
				{"links", number(r, &end.links, topospec.MaxLinks)},
				{"digest", r.named(&end.digest)},
			})
		}},
	})
	if was != format && !r.Full() {
		r.Add(1, "format", fmt.Sprintf("%.40q", was), "want "+format+": is it a topology at all?")
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	r.checkCounts(rev, end, sealed, len(tree.keys) > 0 && tree.keys[len(tree.keys)-1] == "end")
	if err := r.Err(); err != nil {
		return nil, err
	}
	if err := rev.Validate(name); err != nil {
		return nil, err
	}
	if digest := rev.Digest(); sealed && end.digest != digest {
		r.Add(0, "end", fmt.Sprintf("digest %v is not that of the content, %v", end.digest, digest), again)
	}
	return rev, r.Err()
}

// again is what to do about a file that does not fit its end.
const again = "if you edited it, seal it again: portcullis topospec convert --draft"

func (r *reader) checkCounts(rev *topospec.Revision, end ending, sealed, there bool) {
	switch {
	case !there && sealed:
		r.Add(0, "", "it does not end with \"end\": it is cut off, or a draft", again)
	case !there:
	case end.devices != len(rev.Devices) || end.links != len(rev.Links):
		r.Add(0, "end", fmt.Sprintf("%d devices and %d links are announced, %d and %d are there", end.devices, end.links, len(rev.Devices), len(rev.Links)), again)
	}
}

func (r *reader) device(v *value) topospec.Device {
	d := topospec.Device{Line: v.line}
	r.table(v, "device", []field{
		{"guid", r.guid(&d.GUID)},
		{"kind", r.named(&d.Kind)},
		{"model", r.string(&d.Model)},
		{"serial", r.string(&d.Serial)},
		{"site", r.string(&d.Site)},
		{"room", r.string(&d.Room)},
		{"rack", r.string(&d.Rack)},
		{"u", number(r, &d.U, 99)},
		{"slot", r.string(&d.Slot)},
		{"name", r.string(&d.Name)},
		{"host", r.string(&d.Host)},
		{"rail", number(r, &d.Rail, 254)},
		{"psid", r.string(&d.PSID)},
		{"role", r.named(&d.Role)},
		{"stock", r.named(&d.Stock)},
		{"ports", number(r, &d.Ports, 254)},
		{"system_image", r.guid(&d.SystemImage)},
		{"port_guids", func(v *value, o string) {
			r.list(v, o, 254, func(v *value, o string) {
				var g ib.GUID
				r.guid(&g)(v, o)
				d.PortGUIDs = append(d.PortGUIDs, g)
			})
		}},
	})
	return d
}

func (r *reader) guid(to *ib.GUID) func(*value, string) {
	return r.parsed(func(s string) (err error) { *to, err = topospec.ParseGUID(s); return err })
}

func (r *reader) end(to *topospec.End) func(*value, string) {
	return r.parsed(func(s string) (err error) { *to, err = topospec.ParseEnd(s); return err })
}

func (r *reader) link(v *value) topospec.Link {
	l := topospec.Link{Line: v.line}
	r.table(v, "link", []field{
		{"a", r.end(&l.A)},
		{"b", r.end(&l.B)},
		{"state", r.named(&l.State)},
		{"class", r.named(&l.Class)},
		{"cable", func(v *value, o string) {
			r.table(v, o, []field{{"pn", r.string(&l.Cable.Part)}, {"sn", r.string(&l.Cable.Serial)}, {"dm", number(r, &l.Cable.Length, math.MaxUint16)}})
		}},
		{"since", r.string(&l.Since)},
		{"reason", r.string(&l.Reason)},
	})
	return l
}

func (r *reader) policy(v *value, object string, p *topospec.Policy) {
	r.table(v, object, []field{
		{"mode", r.named(&p.Mode)},
		{"per_field", func(v *value, o string) {
			r.table(v, o, []field{
				{"guid", r.named(&p.Fields.GUID)},
				{"port", r.named(&p.Fields.Port)},
				{"type", r.named(&p.Fields.Type)},
				{"portguid", r.named(&p.Fields.PortGUID)},
				{"sysimage", r.named(&p.Fields.SystemImage)},
				{"numports", r.named(&p.Fields.NumPorts)},
			})
		}},
		{"unknown_link", r.named(&p.Unknown)},
		{"min_score_permille", number(r, &p.MinScore, 1000)},
		{"max_flips", number(r, &p.MaxFlips, topospec.MaxLinks)},
		{"stocked_rma", r.boolean(&p.Stocked)},
		{"two_persons", func(v *value, o string) {
			r.list(v, o, 16, func(v *value, o string) {
				var t topospec.Touch
				r.named(&t)(v, o)
				p.Two = append(p.Two, t)
			})
		}},
		{"freeze", func(v *value, o string) {
			r.list(v, o, 1000, func(v *value, o string) {
				var w topospec.Window
				r.table(v, o, []field{{"from", r.time(&w.From)}, {"to", r.time(&w.To)}, {"why", r.string(&w.Why)}})
				p.Freeze = append(p.Freeze, w)
			})
		}},
	})
}

func (r *reader) time(to *time.Time) func(*value, string) {
	return r.parsed(func(s string) (err error) {
		if *to, err = time.Parse(time.RFC3339, s); err != nil {
			return fmt.Errorf("time %.40q: want the form 2006-01-02T15:04:05Z", s)
		}
		*to = to.UTC()
		return nil
	})
}
