package movein

import (
	"strings"

	"portcullis/fabricsm/opensmconf"
	"portcullis/fabricsm/opensmconf/verdict"
	"portcullis/fabricsm/qos"
	"portcullis/fabricsm/route/enginelist"
)

// stands names engines of OpenSM and UFM that do not exist here, and the one whose routes are most like theirs.
var stands = map[string]string{
	"lash": "dfsssp", "nue": "dfsssp", "sssp": "dfsssp",
	"ar_updn": "updn", "ar_ftree": "ftree", "ar_torus": "torus-2QoS", "ar_dor": "dor", "ar_minhop": "minhop", "dfp2": "dfp",
}

// engine decides on the list of routing engines.
func (p *Plan) engine(s *opensmconf.Setting, it *Item) {
	if opensmconf.IsNull(s.Value) {
		it.Verdict, it.Text = verdict.Taken, "OpenSM's default is minhop; here updn follows it, for fabrics in which minhop could deadlock"
		return
	}
	if enginelist.Check(s.Value) == nil {
		it.Verdict, it.To, it.Text = verdict.Taken, quote(s.Value), "no engine is added to the list"
		p.set(it.Key, it.To, it.Place()+" "+s.Name)
		return
	}
	var list, notes []string
	for name := range strings.SplitSeq(s.Value, ",") {
		name = strings.TrimSpace(name)
		instead := name
		if enginelist.Check(name) != nil && !strings.EqualFold(name, "no_fallback") {
			instead = stands[strings.ToLower(name)]
			if instead == "" {
				notes = append(notes, short(name)+" does not exist here")
				continue
			}
			notes = append(notes, short(name)+" does not exist here, "+instead+" stands for it")
		}
		if next := append(list, instead); enginelist.Check(strings.Join(next, ",")) == nil {
			list = next
		}
	}
	if len(list) == 0 {
		list = []string{enginelist.Default}
	}
	it.Verdict, it.Loses, it.To = verdict.Unsupported, true, quote(strings.Join(list, ","))
	it.Text = strings.Join(notes, "; ") + "; routes are other ones"
	p.set(it.Key, it.To, it.Place()+" "+s.Name)
}

// short cuts a quotation from a file.
func short(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

// qosSwitch decides on the option that switches quality of service on; qos adds the tables.
func (p *Plan) qosSwitch(s *opensmconf.Setting, it *Item) {
	on, plain := opensmconf.Truth(s.Value)
	it.Verdict = verdict.Taken
	if !plain {
		it.Verdict, it.Text = verdict.Changed, "OpenSM takes anything but TRUE for FALSE, so FALSE was in force; check what was meant"
	}
	if it.To = "false"; on {
		it.To = "true"
		p.set(it.Key, it.To, it.Place()+" "+s.Name)
	}
}

const qosName = "qos.conf"

// qosOption takes an option of quality of service into a file of their own.
func (p *Plan) qosOption(s *opensmconf.Setting, it *Item) {
	var o qos.Options
	switch known, err := o.Set(s.Name, s.Value); {
	case !known:
		it.Verdict, it.Loses, it.Text = verdict.Unknown, true, unknownText(s.Name)
	case err != nil:
		it.Verdict, it.Loses, it.Text = verdict.Unknown, true, err.Error()
	default:
		it.Verdict, it.To = verdict.Taken, quote(qosName)
		p.lanes = append(p.lanes, s.Name+" "+s.Value)
	}
}

// qos writes the file of the options of quality of service.
func (p *Plan) qos() {
	if !p.isOn("qos") {
		return
	}
	text := "qos TRUE\n"
	if len(p.lanes) > 0 {
		text += strings.Join(p.lanes, "\n") + "\n"
	}
	p.set("fabric.qos.options", quote(qosName), "qos_*")
	p.file(qosName, []byte(text), false)
}
