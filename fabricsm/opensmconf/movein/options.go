package movein

import (
	"fmt"
	"path"
	"strings"

	"portcullis/fabricsm/opensmconf"
	"portcullis/fabricsm/opensmconf/verdict"
)

// options judges the settings of an opensm.conf. What the planner decides is added by its own functions, to which
// p.last has the settings in force.
func (p *Plan) options(file string, settings []opensmconf.Setting) {
	for _, s := range settings {
		p.last[s.Name] = s
	}
	for name, s := range p.overrides {
		p.last[name] = s
	}
	for _, s := range settings {
		o, known := verdict.Find(s.Name)
		switch {
		case !known:
			p.add(Item{File: file, Line: s.Line, Setting: s.Name, Verdict: verdict.Unknown, Text: unknownText(s.Name), Loses: true})
		case p.last[s.Name].Line < 0:
			p.add(Item{File: file, Line: s.Line, Setting: s.Name, Verdict: verdict.NotNeeded, Text: "UFM overrides it: see " + gvName})
		case p.last[s.Name].Line != s.Line && !repeats(s.Name):
			p.add(Item{
				File: file, Line: s.Line, Setting: s.Name, Verdict: verdict.NotNeeded,
				Text: fmt.Sprintf("OpenSM takes the last of several; it is in line %d", p.last[s.Name].Line),
			})
		default:
			p.option(file, &s, &o)
		}
	}
}

// repeats reports whether OpenSM takes each line of an option, for different service levels.
func repeats(name string) bool {
	return strings.HasPrefix(name, "cc_ca_cong_setting_") && !strings.HasSuffix(name, "_port_control") && !strings.HasSuffix(name, "_control_map")
}

func unknownText(name string) string {
	text := "no option of OpenSM or of UFM's OpenSM has this name, and OpenSM ignores it"
	if near := verdict.Nearest(name); near != "" {
		text += "; did you mean " + near + "?"
	}
	return text
}

// option judges one setting that is in force.
func (p *Plan) option(file string, s *opensmconf.Setting, o *verdict.Option) {
	it := Item{File: file, Line: s.Line, Setting: s.Name, Key: o.Key, Verdict: o.Class, Text: o.Text}
	if !o.Secret {
		it.Value = s.Value
	}
	if o.With != "" && !p.isOn(o.With) {
		it.Verdict, it.Text = verdict.NotNeeded, "it has no effect while "+o.With+" is off"
		p.add(it)
		return
	}
	p.found(s.Value) // a file that is named is none that no setting names
	j := o.Judge(s.Value)
	if o.Form == verdict.Planned && p.planned(s, &it) {
		p.add(it)
		return
	}
	if o.Form == verdict.File {
		if p.optionFile(s, o, &it); it.Verdict != "" {
			p.add(it)
		}
		return
	}
	it.Verdict, it.Key, it.To, it.Text, it.Loses = j.Class, j.Key, j.To, j.Text, j.Loses
	if it.To != "" {
		p.set(it.Key, it.To, it.Place()+" "+s.Name)
	}
	p.add(it)
}

// planned decides on an option whose verdict depends on more than its value. It reports false for one at OpenSM's default
// that the table judges.
func (p *Plan) planned(s *opensmconf.Setting, it *Item) bool {
	decide, ok := map[string]func(*opensmconf.Setting, *Item){
		"guid": p.guid, "sm_key": p.smKey, "sa_key": p.saKey, "m_key": p.mKey, "m_key_protection_level": p.protection,
		"allowed_sm_guids": p.allowed, "ignore_other_sm": p.ignoreOthers, "client_rereg_mode": p.reregister,
		"force_link_speed": p.linkSpeed, "force_link_speed_ext": p.linkSpeedExt, "force_link_speed_ext2": p.linkSpeedExt2, "force_link_width": p.linkWidth, "fdr10": p.fdr10,
		"routing_engine": p.engine, "qos": p.qosSwitch, "partition_config_file": p.partitionFile,
		"topo_config_enabled": p.topoSwitch, "topo_config_file": p.topoFile,
	}[s.Name]
	if !ok && strings.HasPrefix(s.Name, "qos_") {
		decide, ok = p.qosOption, true
	}
	if !ok {
		return false
	}
	decide(s, it)
	return true
}

// found returns the content of the file that a setting names, and the name under which it is known. OpenSM's folders are
// left out: the file is looked for among those of the site.
func (p *Plan) found(value string) (name string, data []byte, ok bool) {
	name = path.Base(strings.ReplaceAll(value, `\`, "/"))
	data, ok = p.site.Files[name]
	if ok {
		p.used[name] = true
	}
	return name, data, ok
}

// optionFile takes a file that an option names.
func (p *Plan) optionFile(s *opensmconf.Setting, o *verdict.Option, it *Item) {
	if opensmconf.IsNull(s.Value) {
		it.Verdict, it.Text = verdict.NotNeeded, "no file is named"
		return
	}
	name, data, ok := p.found(s.Value)
	switch {
	case !ok && o.IsUsual(s.Value):
		it.Verdict, it.Text = verdict.NotNeeded, "it is at OpenSM's default, and there is no such file"
		return
	case !ok:
		it.Verdict, it.Loses = verdict.Unsupported, true
		it.Text = "the file is not among those of the site: copy it into the directory, or take the option out"
		return
	}
	if err := checkFile(s.Name, name, data); err != nil {
		it.Verdict, it.Loses, it.Text = verdict.Unknown, true, "the file is not taken: "+oneLine(err)
		return
	}
	it.Verdict, it.To = o.Class, quote(filesFolder+name)
	p.set(o.Key, it.To, it.Place()+" "+s.Name)
	p.copyFile(name, data, s.Name == "service_name2key_map_file")
}

// filesFolder is where files of the site are, whose names are the site's.
const filesFolder = "files/"

// copyFile adds a file of the site to those to be written, once.
func (p *Plan) copyFile(name string, data []byte, secret bool) {
	name = filesFolder + name
	for i := range p.Files {
		if p.Files[i].Name == name {
			return
		}
	}
	p.file(name, data, secret)
}

// oneLine returns the first of several errors, and says that there are more.
func oneLine(err error) string {
	first, rest, more := strings.Cut(err.Error(), "\n")
	if more {
		first += fmt.Sprintf(" (and %d more)", strings.Count(rest, "\n")+1)
	}
	return first
}
