package audit

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"portcullis/api"
	"portcullis/api/apitest"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// keeper is a service with a webhook that has a dead letter.
type keeper struct {
	replayed v1.Replay
	fails    string
}

func (*keeper) List(context.Context) (*v1.Webhooks, error) {
	return &v1.Webhooks{Items: []v1.Webhook{{Name: "siem", URL: "https://siem.test/", Failing: time.Unix(60, 0), Error: "refused\x1b[2J", Waiting: 3, Dead: 1}}}, nil
}

func (*keeper) DeadLetters(context.Context, string) (*v1.DeadLetters, error) {
	return &v1.DeadLetters{Items: []v1.DeadLetter{{ID: "id-1", Type: "lock.changed", Severity: "critical", Attempts: 9, Message: v1.CloudEvent{Subject: "host/h1"}}}}, nil
}

func (k *keeper) Replay(_ context.Context, _, _ string, in v1.Replay) (*v1.Replayed, error) {
	k.replayed = in
	return &v1.Replayed{Count: 2}, nil
}

func (k *keeper) Test(context.Context, string, string) (*v1.WebhookTest, error) {
	return &v1.WebhookTest{ID: "test-1", Took: "7ms", Error: k.fails}, nil
}

func TestWebhookCommands(t *testing.T) {
	t.Parallel()
	k := &keeper{}
	s := apitest.Start(t, apitest.NewBackend(), func(o *api.Options) { o.Webhooks = k })
	run := func(args ...string) (string, error) {
		var out strings.Builder
		env := cli.New(nil, &out, io.Discard)
		root := &cobra.Command{SilenceErrors: true, SilenceUsage: true}
		env.Flags(root)
		root.AddCommand(webhookCommand(env))
		root.SetArgs(append(args, "--service", s.URL, "--ca", s.CAFile, "--token-file", s.OperatorFile))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"webhook", "list"}, []string{"siem", "1970-01-01", "refused", "https://siem.test/"}},
		{[]string{"webhook", "dead-letters", "siem"}, []string{"id-1", "lock.changed", "critical", "host/h1", "9"}},
		{[]string{"webhook", "replay", "siem", "--id", "id-1", "--id", "id-2", "--reason", "why"}, []string{"2 messages are sent once more"}},
		{[]string{"webhook", "test", "siem"}, []string{"siem has message test-1 after 7ms"}},
		{[]string{"webhook", "list", "-o", "json"}, []string{`"waiting": 3`}},
	} {
		out, err := run(tt.args...)
		for _, want := range tt.want {
			if err != nil || !strings.Contains(out, want) || strings.Contains(out, "\x1b") {
				t.Errorf("%v: %v, want %q:\n%s", tt.args, err, want, out)
			}
		}
	}
	if !slices.Equal(k.replayed.IDs, []string{"id-1", "id-2"}) || k.replayed.Reason != "why" {
		t.Errorf("replayed %+v", k.replayed)
	}
	if _, err := run("webhook", "replay", "siem"); err == nil || !strings.Contains(err.Error(), "--reason is needed") {
		t.Errorf("without a reason: %v", err)
	}
	k.fails = "connection refused"
	if _, err := run("webhook", "test", "siem"); err == nil || !strings.Contains(err.Error(), "does not take message test-1: connection refused") {
		t.Errorf("a test that fails: %v", err)
	}
}
