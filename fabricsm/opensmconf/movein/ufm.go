package movein

import (
	"portcullis/fabricsm/opensmconf"
	"portcullis/fabricsm/opensmconf/verdict"
)

// The files of UFM beside those of its OpenSM.
const (
	gvName      = "gv.cfg"
	userRules   = "partitions.conf.user_ext"
	subnetGroup = "SubnetManager"
)

// gvcfg judges the settings of UFM's gv.cfg. Some of them override those of opensm.conf, which UFM writes: they are put in
// force before that file is judged.
func (p *Plan) gvcfg() error {
	data, ok := p.site.Files[gvName]
	if !ok {
		p.add(Item{
			File: gvName, Setting: "file", Verdict: verdict.Unknown, Loses: true,
			Text: "it is not among the files of the site: name the directory that has it, such as /opt/ufm/files/conf. UFM overrides opensm.conf by it",
		})
		return nil
	}
	p.used[gvName] = true
	settings, err := opensmconf.ParseSections(gvName, data)
	if err != nil {
		return err
	}
	for _, s := range settings {
		p.gvSetting(&s)
	}
	if _, _, ok := p.found(userRules); ok {
		p.add(Item{File: userRules, Setting: "file", Verdict: verdict.NotNeeded, Text: "UFM puts it into partitions.conf, which is taken"})
	}
	return nil
}

func (p *Plan) gvSetting(s *opensmconf.Setting) {
	it := Item{File: gvName, Line: s.Line, Setting: s.Name}
	o, known := verdict.FindUFM(s.Name)
	if !known {
		it.Verdict = verdict.NotNeeded
		it.Text = "it is of UFM's own services, section " + short(s.Section) + ": nothing of the fabric depends on it"
		if s.Section == subnetGroup {
			it.Verdict, it.Loses = verdict.Unknown, true
			it.Text = "it is not known what this option does to the fabric; check it by UFM's manual"
			if near := verdict.NearestUFM(s.Name); near != "" {
				it.Text += "; did you mean " + near + "?"
			}
		}
		p.add(it)
		return
	}
	value := verdict.UFMTruth(s.Value)
	if !o.Secret {
		it.Value = s.Value
	}
	j := o.Judge(value)
	it.Verdict, it.Key, it.To, it.Text, it.Loses = j.Class, j.Key, j.To, j.Text, j.Loses
	in := opensmconf.Setting{Value: value, Line: -1} // no line of opensm.conf
	switch s.Name {
	case "m_key_per_port":
		p.override("m_key_per_port", in)
	case "topoconfig_enabled":
		p.override("topo_config_enabled", in)
		p.topoSwitch(&in, &it)
	}
	p.add(it)
}

// override puts a value in force in place of that of opensm.conf.
func (p *Plan) override(name string, s opensmconf.Setting) {
	s.Name = name
	p.overrides[name] = s
}
