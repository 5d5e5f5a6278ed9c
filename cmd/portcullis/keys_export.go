package main

import (
	"os"

	"github.com/spf13/cobra"
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
"smpquery --m_key 0xKEY". A rotation makes the files old. The service puts it into its
audit log that its keys were asked for. Delete the files after use: shred -u DIR/*.`,
		Args: operands(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return &usageError{msg: "--out is needed", hint: "name a directory to make; keys in clear go into it"}
			}
			c, err := a.contents(cmd.Context(), &state)
			if err != nil {
				return err
			}
			if err := os.Mkdir(out, 0o700); err != nil {
				return err
			}
			e := exported{Files: []string{}}
			if e.Files, err = exportKeys(out, c.Records); err != nil {
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
