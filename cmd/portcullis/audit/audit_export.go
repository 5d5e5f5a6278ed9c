package audit

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"portcullis/api/audit/chain"
	"portcullis/api/audit/ocsf"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/terminal"
	"portcullis/cmd/portcullis/cli"
)

// Formats of entries, each on a line.
const (
	asJSON = "json"
	asOCSF = "ocsf"
)

// lineFormat is how entries are written, each on a line: asJSON or asOCSF.
type lineFormat string

// Set implements pflag.Value.
func (f *lineFormat) Set(s string) error {
	if s != asJSON && s != asOCSF {
		return fmt.Errorf("want %s", wantLine)
	}
	*f = lineFormat(s)
	return nil
}

const wantLine = asJSON + " or " + asOCSF

func (f *lineFormat) String() string { return string(*f) }

// Type names the value in help texts.
func (f *lineFormat) Type() string { return "FORMAT" }

// completeLines completes the option.
func completeLines(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{asJSON, asOCSF}, cobra.ShellCompDirectiveNoFileComp
}

// add adds the option to a command.
func (f *lineFormat) add(c *cobra.Command, usage string) {
	c.Flags().Var(f, "format", usage)
	if err := c.RegisterFlagCompletionFunc("format", completeLines); err != nil {
		panic(err) // the option was added above
	}
}

// write writes an entry as a line of JSON, in which a terminal obeys nothing. Its values are read as they were.
func (f *lineFormat) write(w io.Writer, e *v1.AuditEntry) error {
	var v any = e
	if *f == asOCSF {
		v = ocsf.Of((*chain.Entry)(e))
	}
	if err := terminal.NewEncoder(w).Encode(v); err != nil {
		return fmt.Errorf("write the audit log: %w", err)
	}
	return nil
}

func auditExport(env *cli.Env) *cobra.Command {
	var f auditFilter
	out, after, format := "", uint64(0), lineFormat(asJSON)
	c := &cobra.Command{
		Use: "export", Short: "Write the audit log as JSON, an entry on each line", Args: cli.Operands(),
		Long: `Write the audit log as JSON, an entry on each line, oldest first. --after SEQ continues an
earlier export. "portcullis audit verify --log" verifies such a file if it has all entries.

--format ocsf writes events of the Open Cybersecurity Schema Framework (class API Activity)
instead, for systems that collect those.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q, err := f.query()
			if err != nil {
				return err
			}
			q.Limit = v1.MaxPage
			if after > 0 {
				q.After = strconv.FormatUint(after, 10)
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			return env.ToFile(out, func(w io.Writer) error {
				b := bufio.NewWriter(w)
				for page, err := range c.Audit().Entries(cmd.Context(), q) {
					if err != nil {
						return err
					}
					for i := range page.Items {
						if err := format.write(b, &page.Items[i]); err != nil {
							return err
						}
					}
				}
				return b.Flush()
			})
		},
	}
	f.add(c)
	c.Flags().StringVar(&out, "out", "", "file to write; it appears when it is complete (default: standard output)")
	c.Flags().Uint64Var(&after, "after", 0, "only entries after this number")
	format.add(c, "format of each line: "+wantLine)
	return c
}
