package identity

import (
	"github.com/spf13/cobra"

	"portcullis/cmd/portcullis/cli"
)

func contextCommand(env *cli.Env) *cobra.Command {
	c := cli.Group("context", "Name services once, and choose between them",
		contextAdd(env), contextList(env), contextRemove(env), contextShow(env), contextUse(env))
	c.Long = `Name services once, and choose between them.

A context is a service with the files by which it is asked. Contexts are in
~/.config/portcullis/contexts.yaml, which holds no token and no key: it names their files. Without them,
the session of portcullis login counts.
Commands use the context of --context, of PORTCULLIS_CONTEXT, or the current one, in this order.
--service, --socket, PORTCULLIS_SERVICE and PORTCULLIS_SOCKET come before the context of the
environment and the current one.`
	return c
}

func contextAdd(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "add NAME --service URL", Short: "Add a context of --service, --ca and a credential, or of --socket", Args: cli.Operands("NAME"),
		Long: `Add a context of --service, --ca and --token-file, or of --socket. In place of --token-file there may be
--client-cert and --client-key. Files are named, and not read. The first context is not made the current one: context use does that.`,
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := cli.LoadContexts()
			if err != nil {
				return err
			}
			if _, ok := all.Find(args[0]); ok {
				return &cli.UsageError{Msg: "there is a context " + args[0], Hint: "remove it first: portcullis context remove " + args[0]}
			}
			x, err := env.ContextOfFlags(args[0])
			if err != nil {
				return err
			}
			if (x.Service == "") == (x.Socket == "") {
				return &cli.UsageError{Msg: "either --service or --socket is needed", Hint: "portcullis context add " + args[0] + " --service https://HOST:PORT --ca FILE --token-file FILE"}
			}
			all.List = append(all.List, x)
			if err := all.Save(); err != nil {
				return err
			}
			return env.Print(x, func(w *cli.Columns) {
				w.Text("added context %s; portcullis context use %s makes it the current one", x.Name, x.Name)
			})
		},
	}
}

func contextList(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List contexts, and which one commands use", Args: cli.Operands(),
		RunE: func(*cobra.Command, []string) error {
			all, err := cli.LoadContexts()
			if err != nil {
				return err
			}
			if all.List == nil {
				all.List = []cli.Context{}
			}
			return env.Print(all, func(w *cli.Columns) {
				w.Row("NAME", "USED", "SERVICE", "CREDENTIAL")
				for i := range all.List {
					x, used := &all.List[i], ""
					if x.Name == env.ContextName(all) {
						used = "yes"
					}
					w.Row(x.Name, used, x.Service+x.Socket, x.TokenFile+x.CertFile)
				}
			})
		},
	}
}

func contextRemove(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Remove a context; its files stay", Args: cli.Operands("NAME"), ValidArgsFunction: cli.CompleteContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := cli.LoadContexts()
			if err != nil {
				return err
			}
			x, err := all.Must(args[0])
			if err != nil {
				return err
			}
			place, err := cli.SessionOf(x)
			if err != nil {
				return err
			}
			if s, err := place.Read(); s != nil || err != nil {
				return &cli.UsageError{Msg: "the context " + x.Name + " has a session, which would be left at the provider", Hint: "portcullis logout --context " + x.Name}
			}
			kept := []cli.Context{}
			for _, x := range all.List {
				if x.Name != args[0] {
					kept = append(kept, x)
				}
			}
			if all.List = kept; all.Current == args[0] {
				all.Current = ""
			}
			if err := all.Save(); err != nil {
				return err
			}
			return env.Deleted("context", args[0])
		},
	}
}

func contextShow(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "show [NAME]", Short: "Show a context, by default the one that commands use", Args: atMostOne, ValidArgsFunction: cli.CompleteContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := cli.LoadContexts()
			if err != nil {
				return err
			}
			name := env.ContextName(all)
			if len(args) > 0 {
				name = args[0]
			}
			if name == "" {
				return &cli.UsageError{Msg: "no context is in use", Hint: "portcullis context use NAME, or name one"}
			}
			x, err := all.Must(name)
			if err != nil {
				return err
			}
			return env.Print(x, func(w *cli.Columns) {
				w.Row("NAME", x.Name)
				w.Row("SERVICE", x.Service)
				w.Row("SOCKET", x.Socket)
				w.Row("CA", x.CA)
				w.Row("TOKEN FILE", x.TokenFile)
				w.Row("CLIENT CERT", x.CertFile)
				w.Row("CLIENT KEY", x.KeyFile)
			})
		},
	}
}

func contextUse(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Make a context the current one", Args: cli.Operands("NAME"), ValidArgsFunction: cli.CompleteContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			all, err := cli.LoadContexts()
			if err != nil {
				return err
			}
			x, err := all.Must(args[0])
			if err != nil {
				return err
			}
			all.Current = x.Name
			if err := all.Save(); err != nil {
				return err
			}
			return env.Print(x, func(w *cli.Columns) { w.Text("commands use context %s: %s", x.Name, x.Service+x.Socket) })
		},
	}
}

func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return cli.Operands("NAME")(cmd, args)
}
