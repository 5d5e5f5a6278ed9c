package movein

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keyfile"
	"portcullis/fabricsm/opensmconf"
	"portcullis/fabricsm/opensmconf/verdict"
)

// The folder for keys of devices, and the file there with the one M_Key of all.
const (
	keysFolder  = "keys"
	singleMKey  = "keys/opensm.conf"
	neighbours  = "neighbors"
	smKeyName   = "sm.key"
	saKeyName   = "sa.key"
	mistakenKey = "the value is no key: want a number of 64 bits"
)

// guid decides on the port; port writes the key.
func (p *Plan) guid(s *opensmconf.Setting, it *Item) {
	if _, set := p.value("guid"); !set {
		it.Verdict, it.Text = verdict.NotNeeded, "OpenSM takes the first active port"
	} else {
		it.Verdict = verdict.Changed
	}
	if it.To = quote(p.site.Port); p.site.Port == "" {
		it.To = quote(unnamedPort)
		it.Text += "; no --port was named: set the key before the start"
	}
}

const unnamedPort = "umad:mlx5_0"

func (p *Plan) port() {
	if p.site.Port == "" {
		p.set("fabric.port", quote(unnamedPort), "to be set: the device and port that the manager runs on, as ibstat lists them")
		return
	}
	p.set("fabric.port", quote(p.site.Port), "")
}

// smKey takes the SM_Key into a file of its own.
func (p *Plan) smKey(s *opensmconf.Setting, it *Item) {
	n, err := opensmconf.Number(s.Value, 64)
	alone, _ := opensmconf.Truth(p.last["ignore_other_sm"].Value)
	switch {
	case err != nil:
		it.Verdict, it.Loses, it.Text = verdict.Unknown, true, mistakenKey
	case n <= 1:
		it.Verdict, it.Text = verdict.Unsafe, "0 and 1 are known to every host: it is not taken, and no other manager is believed. Draw one for all managers, if there are several: openssl rand -hex 8"
	case alone:
		it.Verdict, it.Text = verdict.NotNeeded, "ignore_other_sm is TRUE: without an SM_Key no other manager is believed"
	default:
		it.Verdict, it.To = verdict.Taken, quote(smKeyName)
		it.Text = "in a file of mode 0600"
		if keys.Check(keys.New(n)) != nil {
			it.Verdict, it.Text = verdict.Changed, "in a file of mode 0600; it is easy to guess, draw another one for all managers: openssl rand -hex 8"
		}
		p.secret(it, smKeyName, n)
	}
}

// saKey takes the SA_Key into a file of its own.
func (p *Plan) saKey(s *opensmconf.Setting, it *Item) {
	n, err := opensmconf.Number(s.Value, 64)
	switch {
	case err != nil:
		it.Verdict, it.Loses, it.Text = verdict.Unknown, true, mistakenKey
	case n <= 1 || keys.Check(keys.New(n)) != nil:
		it.Verdict, it.Text = verdict.Unsafe, "0, 1 and others that are easy to guess are refused: the service draws one where keys are sealed, else no request is trusted"
	default:
		it.Verdict, it.To, it.Text = verdict.Taken, quote(saKeyName), "in a file of mode 0600; without the file the service draws one, and changes it"
		p.secret(it, saKeyName, n)
	}
}

func (p *Plan) secret(it *Item, name string, n uint64) {
	p.set(it.Key, quote(name), it.Place()+" "+it.Setting)
	p.file(name, fmt.Appendf(nil, "0x%016x\n", n), true)
}

// mKey decides on the M_Key; keys writes the file with it.
func (p *Plan) mKey(s *opensmconf.Setting, it *Item) {
	n, err := opensmconf.Number(s.Value, 64)
	switch {
	case err != nil:
		it.Verdict, it.Loses, it.Text = verdict.Unknown, true, mistakenKey
	case n == 0 && !p.perPort():
		it.Verdict, it.Key = verdict.Unsafe, "fabric.keys.root"
		it.Text = "devices have no M_Key, and any host may reprogram them. Name a root, and each device gets one: portcullis keys root FILE"
	case p.perPort() || n == ^uint64(0):
		it.Verdict, it.Key, it.Text = verdict.NotNeeded, "fabric.keys.import", "it is a seed; the keys that devices have are in guid2mkey"
	default:
		p.single = keys.New(n)
		it.Verdict, it.To, it.Text = verdict.Changed, quote(singleMKey), "it is taken over from all devices, and each gets one of its own"
	}
}

// perPort reports whether the site has an M_Key for each port, which UFM has also where m_key is 0.
func (p *Plan) perPort() bool {
	on, _ := opensmconf.Truth(p.last["m_key_per_port"].Value)
	return on
}

// protection decides on the protection level of M_Keys.
func (p *Plan) protection(s *opensmconf.Setting, it *Item) {
	n, err := opensmconf.Number(s.Value, 32)
	switch {
	case err != nil || n > 3:
		it.Verdict, it.Loses, it.Text = verdict.Unknown, true, "want 0 to 3"
	case n >= 2:
		it.Verdict, it.To = verdict.Taken, fmt.Sprint(n)
		p.set(it.Key, it.To, it.Place()+" "+s.Name)
	case p.isOn("m_key") || p.perPort():
		it.Verdict, it.Text = verdict.Unsafe, "any host may read the fabric, and at 0 the keys; 2 here. Tools without the key no longer read devices: portcullis keys lend"
	default:
		it.Verdict, it.Text = verdict.NotNeeded, "it has no effect without M_Keys; with them it is 2 here"
	}
}

// allowed takes the other managers.
func (p *Plan) allowed(s *opensmconf.Setting, it *Item) {
	if opensmconf.IsNull(s.Value) {
		it.Verdict, it.Text = verdict.NotNeeded, "no other manager is named"
		return
	}
	var list []string
	for text := range strings.SplitSeq(s.Value, ",") {
		g, err := ib.ParseGUID(strings.TrimSpace(text))
		if err != nil || !g.Valid() {
			it.Verdict, it.Loses, it.Text = verdict.Unknown, true, "want port GUIDs with commas between"
			return
		}
		list = append(list, quote(g.String()))
	}
	it.Verdict, it.To = verdict.Taken, "["+strings.Join(list, ", ")+"]"
	it.Text = "with the switch port that it is cabled to, none other is believed: PORT-GUID@SWITCH-GUID/PORT"
	p.set(it.Key, it.To, it.Place()+" "+s.Name)
}

// ignoreOthers decides on ignore_other_sm.
func (p *Plan) ignoreOthers(s *opensmconf.Setting, it *Item) {
	if on, _ := opensmconf.Truth(s.Value); !on {
		it.Verdict, it.Text = verdict.NotNeeded, "managers that show the SM_Key are believed, as before"
		return
	}
	it.Verdict = verdict.Changed
}

// keys takes the keys that devices have.
func (p *Plan) keys() {
	held, classes := 0, 0
	for _, kind := range keys.Kinds() {
		name := keyfile.Name(kind)
		if name == "" {
			continue
		}
		if n, on := p.keyFile(kind, name); kind == keys.MKey {
			held = n
		} else if on {
			classes += n
		}
	}
	if held > 0 {
		p.neighbours()
	}
	if held > 0 || classes > 0 {
		p.set("fabric.keys.import", quote(keysFolder), "guid2mkey and its kin")
	}
	if !p.single.IsZero() {
		p.file(singleMKey, fmt.Appendf(nil, "m_key 0x%016x\n", p.single.Reveal()), true)
		p.set("fabric.keys.import_options", quote(singleMKey), "m_key")
	}
	if held > 0 || classes > 0 || !p.single.IsZero() || p.isOn("cc_key_enable") || p.isOn("vs_key_enable") || p.isOn("n2n_key_enable") {
		p.Root = true
		p.set("fabric.keys.root", quote(RootName), "drawn for this move: keep it apart from the state, and back it up")
	}
}

// enables are the options that switch the keys of classes.
var enables = map[keys.Kind]string{
	keys.CCKey: "cc_key_enable", keys.VSKey: "vs_key_enable", keys.N2NKey: "n2n_key_enable", keys.N2NNodeKey: "n2n_key_enable",
}

// keyFile takes the keys of a kind. It returns how many devices have one, and whether keys of that kind are managed.
func (p *Plan) keyFile(kind keys.Kind, name string) (held int, on bool) {
	_, data, ok := p.found(name)
	if !ok {
		return 0, false
	}
	entries, err := keyfile.Parse(name, data)
	if err != nil {
		p.problems(name, "keys", err, "the whole file is refused: a device whose key is missing would be locked")
		return 0, false
	}
	for _, e := range entries {
		if !e.Key.IsZero() {
			held++
		}
	}
	it := Item{File: name, Setting: "keys", Key: "fabric.keys.import", Verdict: verdict.NotNeeded, Text: "no device in it has a key"}
	on = kind == keys.MKey || p.isOn(enables[kind])
	switch {
	case held > 0 && !on:
		it.Text = fmt.Sprintf("%s is off: the keys of %d devices stay as they are, and are not managed", enables[kind], held)
	case held > 0:
		it.Verdict, it.To = verdict.Changed, quote(keysFolder)
		it.Text = fmt.Sprintf("keys of %d devices, in files of mode 0600: they are taken over, and each device gets another one", held)
		p.file(keysFolder+"/"+name, keyfile.Format(entries), true)
	}
	p.add(it)
	return held, on
}

// neighbours takes the cables by which M_Keys are known before a device answers.
func (p *Plan) neighbours() {
	_, data, ok := p.found(neighbours)
	if !ok {
		return
	}
	links, err := keyfile.ParseNeighbors(neighbours, data)
	if err != nil {
		p.problems(neighbours, "cables", err, "keys are found without it, by trying")
		return
	}
	p.add(Item{File: neighbours, Setting: "cables", Key: "fabric.keys.import", Verdict: verdict.Taken, To: quote(keysFolder), Text: fmt.Sprintf("%d links", len(links))})
	p.file(keysFolder+"/"+neighbours, keyfile.FormatNeighbors(links), true)
}
