package main

import (
	"os"

	"github.com/spf13/cobra"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keyfile"
	"portcullis/fabricsm/sm"
)

// exported is what "keys export" prints. It has no key.
type exported struct {
	Files []string `json:"files"`
}

func (a *app) keysExport() *cobra.Command {
	var state stateFlags
	var out string
	c := &cobra.Command{
		Use:   "export",
		Short: "Write keys in clear into a new directory, for diagnostics or another subnet manager",
		Long: `Write the keys that devices hold into a new directory of mode 0700, as guid2mkey and
its kin in OpenSM's format: in clear. Diagnostics show the key of a device with
"smpquery --m_key 0xKEY". The file neighbors has what is behind the ports of switches, so
that another subnet manager finds the way: "fabric.keys.import: DIR" with "import_keep:
true" has one of ours go on with these keys. A rotation makes the files old. The service puts it into its
audit log that its keys were asked for. Delete the files after use: shred -u DIR/*.`,
		Args: operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return &usageError{msg: "--out is needed", hint: "name a directory to make; keys in clear go into it"}
			}
			c, facts, err := a.opened(cmd.Context(), &state)
			if err != nil {
				return err
			}
			if err := os.Mkdir(out, 0o700); err != nil {
				return err
			}
			e := exported{Files: []string{}}
			if e.Files, err = exportKeys(out, c.Records, neighbours(facts, c.Records)); err != nil {
				return err
			}
			return a.print(e, func(w *columns) {
				for _, f := range e.Files {
					w.text("%s", f)
				}
				w.text("these are keys in clear: delete them after use")
			})
		},
	}
	state.add(c)
	c.Flags().StringVar(&out, "out", "", "directory to make")
	return c
}

// neighbours lists what is behind ports as the file neighbors has it: the switches that
// facts name, and the adapters at the places of their M_Keys. Of the far end the port
// number is not stored: it is written as 0.
func neighbours(facts []sm.Fact, records []keys.Record) (out []keyfile.Link) {
	ports := make(map[ib.GUID]ib.GUID) // of port 0 of a switch, by node GUID, where they differ
	far := make(map[keyfile.Port]ib.GUID)
	for i := range facts {
		if f := &facts[i]; f.Kind == sm.FactBehind && f.Port == 0 {
			ports[f.GUID] = f.Behind
		}
	}
	end := func(node ib.GUID, num ib.PortNum) keyfile.Port {
		if guid := ports[node]; guid != 0 {
			node = guid
		}
		return keyfile.Port{GUID: node, Num: num}
	}
	since := make(map[keyfile.Port]keys.Held)
	for i := range records {
		r := &records[i]
		if r.Kind != keys.MKey || r.Place.IsZero() || r.Current.IsZero() {
			continue
		}
		at := end(r.Place.Switch, r.Place.Port)
		if h, twice := since[at]; !twice || h.Since.Before(r.Current.Since) {
			since[at], far[at] = r.Current, r.GUID
		}
	}
	for i := range facts {
		if f := &facts[i]; f.Kind == sm.FactBehind && f.Port != 0 {
			far[end(f.GUID, f.Port)] = f.Behind
		}
	}
	for at, guid := range far {
		out = append(out, keyfile.Link{From: at, To: keyfile.Port{GUID: guid}})
	}
	return out
}
