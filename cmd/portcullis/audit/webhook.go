package audit

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

func webhookCommand(env *cli.Env) *cobra.Command {
	c := &cobra.Command{Use: "webhook", Short: "Servers that events are sent to"}
	c.AddCommand(webhookList(env), webhookDead(env), webhookReplay(env), webhookTest(env))
	return c
}

func webhookList(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the servers that events are sent to, and how they are", Args: cli.Operands(),
		Long: `List the servers that events are sent to, which the configuration of the service names (webhooks.to and exits). FAILING
is the time since which all attempts fail, WAIT the number of messages that are tried again, and DEAD the number of those
that failed for three days.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			list, err := c.Webhooks().List(cmd.Context())
			if err != nil {
				return err
			}
			return env.Print(list, func(w *cli.Columns) {
				w.Row("NAME", "KIND", "DELIVERED", "FAILING", "WAIT", "DEAD", "URL", "ERROR")
				for i := range list.Items {
					h := &list.Items[i]
					w.Row(h.Name, orDash(h.Kind), stampOr(h.Delivered), stampOr(h.Failing), strconv.Itoa(h.Waiting), strconv.Itoa(h.Dead), h.URL, orDash(h.Error))
				}
			})
		},
	}
}

func webhookDead(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "dead-letters NAME", Short: "List messages that were not delivered within three days", Args: cli.Operands("NAME"),
		Long: `List the messages to the webhook NAME that were not delivered within three days, the oldest first. They are
tried no more until webhook replay. A webhook keeps 500 of them.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			list, err := c.Webhooks().DeadLetters(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return env.Print(list, func(w *cli.Columns) {
				w.Row("ID", "FIRST", "TRIED", "SEVERITY", "EVENT", "ABOUT", "ERROR")
				for i := range list.Items {
					l := &list.Items[i]
					w.Row(l.ID, cli.Stamp(l.First), strconv.Itoa(l.Attempts), l.Severity, l.Type, l.Message.Subject, orDash(l.Error))
				}
			})
		},
	}
}

func webhookReplay(env *cli.Env) *cobra.Command {
	var in v1.Replay
	c := &cobra.Command{
		Use: "replay NAME [--id ID]... --reason WHY", Short: "Have dead letters sent once more", Args: cli.Operands("NAME"),
		Long: `Have dead letters of the webhook NAME sent once more: those with an ID, or all. They keep their ids, by which
the server knows a message that it has already.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(in.Reason) == "" {
				return &cli.UsageError{Msg: "--reason is needed", Hint: "usage: " + cmd.UseLine()}
			}
			c, err := env.Connect()
			if err != nil {
				return err
			}
			out, err := c.Webhooks().Replay(cmd.Context(), args[0], in)
			if err != nil {
				return err
			}
			return env.Print(out, func(w *cli.Columns) { w.Text("%d messages are sent once more", out.Count) })
		},
	}
	c.Flags().StringArrayVar(&in.IDs, "id", nil, "only this one; may be repeated")
	c.Flags().StringVar(&in.Reason, "reason", "", "why, for the audit log")
	return c
}

func webhookTest(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "test NAME", Short: "Send a message that is about no event", Args: cli.Operands("NAME"),
		Long: `Send a message of the type portcullis.webhook.test to the webhook NAME, once, from the instance that is asked. It
fails if the server does not take the message.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.Connect()
			if err != nil {
				return err
			}
			out, err := c.Webhooks().Test(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if out.Error != "" {
				return cli.Hint(errors.New("webhook "+args[0]+" does not take message "+out.ID+": "+out.Error), "see to the server, and to webhooks in the configuration of the service")
			}
			return env.Print(out, func(w *cli.Columns) { w.Text("webhook %s has message %s after %s", args[0], out.ID, out.Took) })
		},
	}
}

func stampOr(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return cli.Stamp(t)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
