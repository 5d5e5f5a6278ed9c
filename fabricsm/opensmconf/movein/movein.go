// Package movein plans how a site that runs OpenSM or UFM moves to Portcullis. It takes the content of the site's files and
// returns what becomes of each setting, the section fabric of a portcullisd.yaml, and the files that the section names. It
// reads and writes nothing itself.
//
// A key never appears in an item, a text or an error. Files of a plan that hold keys are marked as secret.
package movein

import (
	"cmp"
	"fmt"
	"slices"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/opensmconf"
	"portcullis/fabricsm/opensmconf/verdict"
	"portcullis/fabricsm/partition/conf"
)

// Kind is the program that runs a site.
type Kind string

// Kinds of sites.
const (
	OpenSM Kind = "opensm"
	UFM    Kind = "ufm"
)

// MaxFile is the size of a file of a site at most, in bytes.
const MaxFile = 16 << 20

// Site is what was found of a site.
type Site struct {
	Kind  Kind
	Files map[string][]byte // by name without folders
	Port  string            // value of fabric.port; empty: it is to be set by hand
}

// Item is what became of a setting, a rule or a file.
type Item struct {
	File    string        `json:"file"`
	Line    int           `json:"line,omitempty"` // 0: the file as a whole
	Setting string        `json:"setting"`
	Value   string        `json:"value,omitempty"` // not of keys and of unknown settings
	Verdict verdict.Class `json:"verdict"`
	Key     string        `json:"key,omitempty"` // of portcullisd.yaml
	To      string        `json:"to,omitempty"`  // value that is written there
	Text    string        `json:"text,omitempty"`
	// Loses says that the site behaves otherwise afterwards, until it is accepted.
	Loses    bool `json:"loses,omitempty"`
	Accepted bool `json:"accepted,omitempty"`
}

// OutFile is a file to be written.
type OutFile struct {
	Name   string // relative, with slashes
	Data   []byte
	Secret bool // mode 0600
}

// Plan is what becomes of a site.
type Plan struct {
	Kind  Kind
	Items []Item // by file and line
	// Files are to be written, portcullisd.yaml among them.
	Files []OutFile
	// Root says that the configuration names the file RootName for the root of the keys, which is to be drawn.
	Root bool

	site    *Site
	entries map[string]entry // of the configuration, by key
	last    map[string]opensmconf.Setting
	// overrides are settings of UFM that count in place of those of opensm.conf.
	overrides map[string]opensmconf.Setting
	used      map[string]bool // files that were looked at
	single    keys.Key        // the M_Key of all devices; zero: there is none
	lanes     []string        // lines of the file of quality of service
	// clusters are the partitions beside the default one.
	clusters []conf.Partition
}

// RootName is the name of the file with the root of the keys.
const RootName = "keys.root"

// Make plans the move of a site. An error says that there is nothing to be planned from.
func Make(site *Site) (*Plan, error) {
	p := &Plan{
		Kind: site.Kind, site: site, entries: make(map[string]entry),
		last: make(map[string]opensmconf.Setting), overrides: make(map[string]opensmconf.Setting), used: make(map[string]bool),
	}
	const name = "opensm.conf"
	data, ok := site.Files[name]
	if !ok {
		return nil, fmt.Errorf("there is no %s: name the directory that has it, such as %s", name, map[Kind]string{OpenSM: "/etc/opensm", UFM: "/opt/ufm/files/conf"}[site.Kind])
	}
	p.used[name] = true
	settings, err := opensmconf.Parse(name, data)
	if err != nil {
		return nil, err
	}
	if site.Kind == UFM {
		if err := p.gvcfg(); err != nil {
			return nil, err
		}
	}
	p.options(name, settings)
	p.partitions()
	p.qos()
	p.topology()
	p.keys()
	p.lids()
	p.port()
	p.rest()
	p.sort()
	p.Files = append(p.Files, OutFile{Name: "portcullisd.yaml", Data: p.yaml()})
	slices.SortFunc(p.Files, func(a, b OutFile) int { return cmp.Compare(a.Name, b.Name) })
	p.Files = append(p.Files, OutFile{Name: "report.md", Data: p.report()})
	return p, nil
}

// Accept acknowledges items by the name of their setting or as FILE:LINE. It returns the names that fit no item.
func (p *Plan) Accept(names []string) (strange []string) {
	for _, name := range names {
		found := false
		for i := range p.Items {
			it := &p.Items[i]
			if it.Setting == name || it.Place() == name {
				it.Accepted, found = true, true
			}
		}
		if !found {
			strange = append(strange, name)
		}
	}
	for i := range p.Files {
		if p.Files[i].Name == "report.md" {
			p.Files[i].Data = p.report()
		}
	}
	return strange
}

// Open counts the items by which the site behaves otherwise and which are not accepted.
func (p *Plan) Open() (n int) {
	for i := range p.Items {
		if p.Items[i].Loses && !p.Items[i].Accepted {
			n++
		}
	}
	return n
}

// Count returns how many items have a verdict.
func (p *Plan) Count(c verdict.Class) (n int) {
	for i := range p.Items {
		if p.Items[i].Verdict == c {
			n++
		}
	}
	return n
}

// Place returns FILE:LINE, or FILE for the file as a whole.
func (i *Item) Place() string {
	if i.Line == 0 {
		return i.File
	}
	return fmt.Sprintf("%s:%d", i.File, i.Line)
}

func (p *Plan) sort() {
	slices.SortStableFunc(p.Items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
}

func (p *Plan) add(i Item) { p.Items = append(p.Items, i) }

// file adds a file to be written.
func (p *Plan) file(name string, data []byte, secret bool) {
	p.Files = append(p.Files, OutFile{Name: name, Data: data, Secret: secret})
}

// value returns the value of an option that is in force; false: it is not set, or at OpenSM's default.
func (p *Plan) value(name string) (opensmconf.Setting, bool) {
	s, ok := p.last[name]
	if !ok || opensmconf.IsNull(s.Value) {
		return s, false
	}
	if o, known := verdict.Find(name); known && o.IsUsual(s.Value) {
		return s, false
	}
	return s, true
}

// isOn reports whether an option is not at a value that switches it off.
func (p *Plan) isOn(name string) bool {
	s, ok := p.value(name)
	return ok && s.Value != "0" && s.Value != "FALSE"
}
