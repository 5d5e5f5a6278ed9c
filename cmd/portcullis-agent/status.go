package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"portcullis/agent"
)

func (a *app) statusCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "status", Short: "Tell how the last provisioning run ended", Args: noArguments,
		Long: `Tell how the last provisioning run ended. The exit code is that of the run, or
1 when there was none. It asks neither the TPM nor the service.`,
	}
	c.Flags().StringVar(&a.settings.file, "config", "", configHelp)
	a.settings.stateFlag(c.Flags())
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		config, err := a.settings.config(cmd)
		if err != nil {
			return err
		}
		o, err := agent.LastOutcome(config.StateDir)
		if err != nil {
			return err
		}
		if o == nil {
			return &agent.Error{
				Class: agent.ClassOther, Err: fmt.Errorf("no run has ended yet with state in %s", config.StateDir),
				Hint: "portcullis-agent provision attests this host",
			}
		}
		return a.printOutcome(o)
	}
	return c
}

func (a *app) printOutcome(o *agent.Outcome) error {
	if a.json {
		if err := a.print(o); err != nil {
			return err
		}
	} else if o.Class == 0 {
		_, err := fmt.Fprintf(a.stdout, "host %s was admitted at %s\n", plain(o.Host), o.Time.Format(time.RFC3339))
		return err
	}
	if o.Class == 0 {
		return nil
	}
	return &agent.Error{
		Class: o.Class, Err: fmt.Errorf("host %s was not admitted at %s: %s", o.Host, o.Time.Format(time.RFC3339), o.Detail),
	}
}
