package keys

import (
	"os"
	"time"

	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keyfile"
	"portcullis/fabricsm/vault/escrow"
)

// exported is what "keys export" prints. It has no key.
type exported struct {
	Files []string `json:"files"`
}

func keysExport(env *cli.Env) *cobra.Command {
	var state stateFlags
	var out string
	c := &cobra.Command{
		Use:   "export",
		Short: "Write keys in clear into a new directory, for diagnostics or another subnet manager",
		Long: `Write the keys that devices hold into a new directory of mode 0700, in clear. The files have
OpenSM's format: guid2mkey and the others. A diagnostic tool shows the key of a device with
"smpquery --m_key 0xKEY".

The file neighbors lists what is behind the ports of switches, so that another subnet manager
finds the way. One of ours continues with these keys by "fabric.keys.import: DIR" and
"import_keep: true". A rotation makes the files obsolete. The service records the request in its
audit log. Delete the files after use: shred -u DIR/*.`,
		Args: cli.Operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return &cli.UsageError{Msg: "--out is needed", Hint: "name a directory to create; keys in clear go into it"}
			}
			c, err := contents(cmd.Context(), env, &state)
			if err != nil {
				return err
			}
			if err := os.Mkdir(out, 0o700); err != nil {
				return err
			}
			e := exported{Files: []string{}}
			if e.Files, err = exportKeys(out, c.Records, neighbours(c)); err != nil {
				return err
			}
			return env.Print(e, func(w *cli.Columns) {
				for _, f := range e.Files {
					w.Text("%s", f)
				}
				w.Text("these are keys in clear: delete them after use")
			})
		},
	}
	state.add(c)
	c.Flags().StringVar(&out, "out", "", "directory to create")
	return c
}

// neighbours lists the devices behind ports in the form of the file neighbors: the switches that were found there, and the
// adapters at the places of their M_Keys. The port number of the far end is not stored: it is written as 0.
func neighbours(c *escrow.Contents) (out []keyfile.Link) {
	end := func(at ib.Place) keyfile.Port {
		if guid := c.Behind[ib.Place{Switch: at.Switch}]; guid != 0 { // where it differs from the node GUID
			at.Switch = guid
		}
		return keyfile.Port{GUID: at.Switch, Num: at.Port}
	}
	far, since := make(map[keyfile.Port]ib.GUID), make(map[keyfile.Port]time.Time)
	for i := range c.Records {
		r := &c.Records[i]
		if r.Kind != keys.MKey || r.Place.IsZero() || r.Current.IsZero() {
			continue
		}
		at := end(r.Place)
		if _, twice := far[at]; !twice || since[at].Before(r.Current.Since) {
			since[at], far[at] = r.Current.Since, r.GUID
		}
	}
	for at, guid := range c.Behind {
		if at.Port != 0 {
			far[end(at)] = guid
		}
	}
	for at, guid := range far {
		out = append(out, keyfile.Link{From: at, To: keyfile.Port{GUID: guid}})
	}
	return out
}
