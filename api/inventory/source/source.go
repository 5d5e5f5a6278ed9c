package source

import (
	"fmt"
	"slices"
	"strings"

	"portcullis/api/inventory"
	"portcullis/api/inventory/signature"
)

// Form is the form of a file.
type Form string

// Forms. The empty Form is YAML.
const (
	YAML          Form = "yaml"
	ManifestJSON  Form = "manifest"      // JSON, signed
	ManifestCSV   Form = "csv"           // a manifest, signed
	Ibnetdiscover Form = "ibnetdiscover" // the grouped form, or a netlist of ibsim
	Topoconfig    Form = "topoconf"      // of OpenSM and UFM
	NDT           Form = "ndt"           // plans of UFM's NDT plugin, with a file of GUIDs
	GUIDs         Form = "guids"         // names and GUIDs of the devices that plans name, as CSV
	UFM           Form = "ufm"           // answers of UFM's REST API
	NetBox        Form = "netbox"        // answers of NetBox's REST API
)

// Forms lists all forms, the default first.
func Forms() []Form {
	return []Form{YAML, ManifestJSON, ManifestCSV, Ibnetdiscover, Topoconfig, NDT, GUIDs, UFM, NetBox}
}

// Parse reads files of any forms. keys are the pinned keys that manifests are verified with; nil: none. The error is
// inventory.Problems and lists everything wrong within the files.
func Parse(files []inventory.File, keys *signature.Set) (*inventory.Declaration, error) {
	b := &inventory.Builder{}
	if err := b.Bound(len(files)); err != nil {
		return nil, err
	}
	var plans []plan
	exports := map[Form][]plan{}
	for i := range files {
		f := &files[i]
		in := b.Open(f.Name)
		if len(f.Data) > inventory.MaxFileSize {
			in.Problem(0, "file has %d bytes, at most %d are allowed", len(f.Data), inventory.MaxFileSize)
			continue
		}
		switch Form(f.Form) {
		case "", YAML:
			in.YAML(f.Data)
		case ManifestJSON, ManifestCSV:
			manifest(in, f, keys)
		case Ibnetdiscover, Topoconfig:
			observed(in, f)
		case NDT, GUIDs:
			plans = append(plans, plan{in: in, f: f})
		case UFM:
			exports[UFM] = append(exports[UFM], plan{in: in, f: f, objects: objects(in, f.Data, "data")})
		case NetBox:
			exports[NetBox] = append(exports[NetBox], plan{in: in, f: f, objects: objects(in, f.Data, "results")})
		default:
			in.Problem(0, "form %.32q: want one of %s", f.Form, words(Forms()))
		}
	}
	planned(plans)
	ufm(exports[UFM])
	netbox(exports[NetBox])
	return b.Declaration()
}

func words(forms []Form) string {
	out := make([]string, len(forms))
	for i, f := range forms {
		out[i] = string(f)
	}
	return strings.Join(out, ", ")
}

// manifest verifies a manifest and reads it.
func manifest(in *inventory.Input, f *inventory.File, keys *signature.Set) {
	if len(f.Signature) == 0 {
		in.Problem(0, "the manifest has no signature: hand in %s.sig beside it", f.Name)
		return
	}
	key, err := keys.Verify(f.Data, f.Signature)
	if err != nil {
		in.Problem(0, "%v; pinned are %s", err, pinned(keys))
		return
	}
	if f.Form == string(ManifestCSV) {
		manifestCSV(in, f.Data, &key)
		return
	}
	rack, line := in.Manifest(f.Data)
	checkRack(in, line, rack, &key)
}

// checkRack reports the manifest of a rack that its key does not sign.
func checkRack(in *inventory.Input, line int, rack string, key *signature.Key) {
	if rack != "" && !key.Signs(rack) {
		in.Problem(line, "manifest of rack %.64q: the key %q signs only those of %s", rack, key.Name, strings.Join(key.Racks, ", "))
	}
}

func pinned(keys *signature.Set) string {
	names := []string{}
	for _, k := range keys.Keys() {
		names = append(names, fmt.Sprintf("%q (sha256:%x)", k.Name, k.Fingerprint[:6]))
	}
	if len(names) == 0 {
		return "none: set inventory.manifest_keys of the configuration"
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
