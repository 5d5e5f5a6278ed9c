package native

import (
	"encoding/json"
	"strconv"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topospec"
)

// Form is how a file is written. The zero Form is JSON.
type Form uint8

// Forms.
const (
	JSON Form = iota
	YAML
)

// AppendTo writes a revision, sealed, in normal order. Every device and link has a
// line of its own, so that two files can be compared by line.
func AppendTo(b []byte, r *topospec.Revision, form Form) []byte {
	n := r.Clone()
	n.Normalize()
	w := &writer{b: b, form: form}
	w.open()
	w.key("format", quote(format))
	w.key("revision", strconv.FormatUint(n.Number, 10))
	if !n.Parent.IsZero() {
		w.key("parent", quote(n.Parent.String()))
	}
	w.key("fabric", quote(n.Fabric))
	w.key("policy", policyText(&n.Policy))
	w.list("devices", len(n.Devices), func(i int) string { return deviceText(&n.Devices[i]) })
	w.list("links", len(n.Links), func(i int) string { return linkText(&n.Links[i]) })
	var end row
	end.number("devices", uint64(len(n.Devices)), true)
	end.number("links", uint64(len(n.Links)), true)
	end.text("digest", r.Digest().String())
	w.last("end", end.String())
	return w.b
}

// writer writes the outermost level, the only one in which the forms differ: a
// line of JSON is a line of YAML.
type writer struct {
	b    []byte
	form Form
}

func (w *writer) open() {
	if w.form == JSON {
		w.b = append(w.b, "{\n"...)
	}
}

func (w *writer) name(key string) {
	if w.form == JSON {
		key = quote(key)
	}
	w.b = append(w.b, key...)
	w.b = append(w.b, ": "...)
}

func (w *writer) key(key, text string) {
	w.name(key)
	w.b = append(w.b, text...)
	w.comma(true)
}

func (w *writer) comma(more bool) {
	if w.form == JSON && more {
		w.b = append(w.b, ',')
	}
	w.b = append(w.b, '\n')
}

func (w *writer) list(key string, n int, item func(int) string) {
	w.name(key)
	if n == 0 {
		w.b = append(w.b, "[]"...)
		w.comma(true)
		return
	}
	dash := "- "
	if w.form == JSON {
		w.b, dash = append(w.b, '['), ""
	} else {
		w.b = w.b[:len(w.b)-1]
	}
	w.b = append(w.b, '\n')
	for i := range n {
		w.b = append(w.b, dash...)
		w.b = append(w.b, item(i)...)
		w.comma(i < n-1)
	}
	if w.form == JSON {
		w.b = append(w.b, "],\n"...)
	}
}

func (w *writer) last(key, text string) {
	w.name(key)
	w.b = append(w.b, text...)
	w.b = append(w.b, '\n')
	if w.form == JSON {
		w.b = append(w.b, "}\n"...)
	}
}

// row is a table on one line; keys without a value are left out.
type row struct{ b []byte }

func (r *row) raw(key, text string) {
	if len(r.b) > 0 {
		r.b = append(r.b, ", "...)
	}
	r.b = append(r.b, '"')
	r.b = append(r.b, key...)
	r.b = append(r.b, `": `...)
	r.b = append(r.b, text...)
}

func (r *row) text(key, s string) {
	if s != "" {
		r.raw(key, quote(s))
	}
}

func (r *row) number(key string, n uint64, always bool) {
	if n != 0 || always {
		r.raw(key, strconv.FormatUint(n, 10))
	}
}

func (r *row) name(key string, zero bool, s string) {
	if !zero {
		r.raw(key, quote(s))
	}
}

func (r *row) guid(key string, g ib.GUID) { r.name(key, g == 0, g.String()) }

func (r *row) String() string { return "{" + string(r.b) + "}" }

// quote returns a JSON string. If Validate accepts the text, the result is a string in YAML, too.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return `""` // Marshal takes every string
	}
	return string(b)
}

func deviceText(d *topospec.Device) string {
	var r row
	r.guid("guid", d.GUID)
	r.name("kind", d.Kind == 0, d.Kind.String())
	r.text("model", d.Model)
	r.text("serial", d.Serial)
	r.text("site", d.Site)
	r.text("room", d.Room)
	r.text("rack", d.Rack)
	r.number("u", uint64(d.U), false)
	r.text("slot", d.Slot)
	r.text("name", d.Name)
	r.text("host", d.Host)
	r.number("rail", uint64(d.Rail), false)
	r.text("psid", d.PSID)
	r.name("role", d.Role == 0, d.Role.String())
	r.name("stock", d.Stock == 0, d.Stock.String())
	r.number("ports", uint64(d.Ports), false)
	r.guid("system_image", d.SystemImage)
	if len(d.PortGUIDs) > 0 {
		list := ""
		for i, g := range d.PortGUIDs {
			if i > 0 {
				list += ", "
			}
			list += quote(g.String())
		}
		r.raw("port_guids", "["+list+"]")
	}
	return r.String()
}

func linkText(l *topospec.Link) string {
	var r, c row
	r.text("a", l.A.String())
	r.name("b", l.B.IsZero(), l.B.String())
	r.name("state", l.State == 0, l.State.String())
	r.name("class", l.Class == 0, l.Class.String())
	c.text("pn", l.Cable.Part)
	c.text("sn", l.Cable.Serial)
	c.number("dm", uint64(l.Cable.Length), false)
	if len(c.b) > 0 {
		r.raw("cable", c.String())
	}
	r.text("since", l.Since)
	r.text("reason", l.Reason)
	return r.String()
}

func policyText(p *topospec.Policy) string {
	var r, f row
	r.name("mode", false, p.Mode.String())
	for _, m := range [...]struct {
		key  string
		mode topospec.FieldMode
	}{
		{"guid", p.Fields.GUID},
		{"port", p.Fields.Port},
		{"type", p.Fields.Type},
		{"portguid", p.Fields.PortGUID},
		{"sysimage", p.Fields.SystemImage},
		{"numports", p.Fields.NumPorts},
	} {
		f.name(m.key, m.mode == 0, m.mode.String())
	}
	if len(f.b) > 0 {
		r.raw("per_field", f.String())
	}
	r.name("unknown_link", p.Unknown == 0, p.Unknown.String())
	r.number("min_score_permille", uint64(p.MinScore), false)
	r.number("max_flips", uint64(max(0, p.MaxFlips)), false)
	if p.Stocked {
		r.raw("stocked_rma", "true")
	}
	if len(p.Two) > 0 {
		list := ""
		for i, t := range p.Two {
			if i > 0 {
				list += ", "
			}
			list += quote(t.String())
		}
		r.raw("two_persons", "["+list+"]")
	}
	if len(p.Freeze) > 0 {
		list := ""
		for i, w := range p.Freeze {
			if i > 0 {
				list += ", "
			}
			var one row
			one.text("from", w.From.UTC().Format(time.RFC3339))
			one.text("to", w.To.UTC().Format(time.RFC3339))
			one.text("why", w.Why)
			list += one.String()
		}
		r.raw("freeze", "["+list+"]")
	}
	return r.String()
}
