// Package cli has what the commands of portcullis share: the connection to the service, options and operands, input and
// output, errors and exit codes. It knows no command.
package cli

import (
	"io"

	"github.com/spf13/cobra"

	"portcullis/api/client"
	"portcullis/cmd/internal/session"
)

// Env is what the commands of one invocation share: the connection to the service, input and output.
type Env struct {
	In     io.Reader
	Out    io.Writer
	Err    io.Writer
	conn   connection
	client *client.Client  // nil: not connected yet
	signed *session.Source // whose token the client shows; nil: it has none, or that of a file
	output format
	json   bool
	reason reason // of requests that change something
}

// New returns an environment that prints tables until the flags of root say otherwise.
func New(stdin io.Reader, stdout, stderr io.Writer) *Env {
	return &Env{In: stdin, Out: stdout, Err: stderr, output: format{kind: formatTable}}
}

// Flags adds the options that all commands have to root.
func (env *Env) Flags(root *cobra.Command) {
	root.PersistentPreRun = func(*cobra.Command, []string) {
		if env.json {
			env.output = format{kind: formatJSON}
		}
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &UsageError{Msg: err.Error(), Hint: c.CommandPath() + " --help names the options"}
	})
	f := root.PersistentFlags()
	f.VarP(&env.output, "output", "o", "output format: "+wantFormat)
	f.BoolVar(&env.json, "json", false, "short for --output json")
	f.StringVar(&env.conn.service, "service", "", "URL of the service, https://HOST:PORT")
	f.StringVar(&env.conn.socket, "socket", "", "unix socket of a subnet manager on this machine, instead of a service")
	f.StringVar(&env.conn.ca, "ca", "", "PEM file of the CA that issued the service's certificate")
	f.StringVar(&env.conn.tokenFile, "token-file", "", "file that holds the operator token")
	f.StringVar(&env.conn.certFile, "client-cert", "", "PEM file of a certificate to authenticate with, instead of a token")
	f.StringVar(&env.conn.keyFile, "client-key", "", "PEM file of its private key")
	f.StringVar(&env.conn.configFile, "config", "", "configuration file (default ~/.config/portcullis/config.yaml)")
	f.StringVar(&env.conn.context, "context", "", "context of ~/.config/portcullis/contexts.yaml to use, instead of the current one")
	f.Var(&env.reason, "reason", "reason of a change, for the audit log: one line of at most 256 characters")
	for name, complete := range map[string]cobra.CompletionFunc{"context": CompleteContexts, "output": completeFormats} {
		if err := root.RegisterFlagCompletionFunc(name, complete); err != nil {
			panic(err) // the option was added above
		}
	}
}

// Local reports whether a subnet manager on this machine is asked, instead of a service.
func (env *Env) Local() bool { return env.conn.socket != "" }

// Tabular reports whether people read the output: it is a table.
func (env *Env) Tabular() bool { return env.output.kind == formatTable || env.Wide() }

// Wide reports whether tables have more columns.
func (env *Env) Wide() bool { return env.output.kind == formatWide }

// JSON reports whether results are printed as JSON.
func (env *Env) JSON() bool { return env.output.kind == formatJSON }
