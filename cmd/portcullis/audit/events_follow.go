package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/terminal"
	"portcullis/cmd/portcullis/cli"
)

// Pauses before a broken stream is opened again.
const (
	firstPause = time.Second
	lastPause  = 30 * time.Second
)

// followEvents prints events until ctx ends or the service refuses. A stream that breaks is opened again where it broke.
func followEvents(ctx context.Context, env *cli.Env, c *client.Client, q v1.EventWatch) error {
	if !env.Tabular() && !env.JSON() {
		return &cli.UsageError{Msg: "--follow prints a table or JSON", Hint: "use -o json: an object on each line"}
	}
	return retry(ctx, env, "the stream is opened again", func() (bool, error) { return followOnce(ctx, env, c, &q) })
}

// retry calls once until ctx ends, or with an error that would be the same at the next attempt, which it returns. Other errors are
// printed, with what is done next. Pauses grow until once reports that it began.
func retry(ctx context.Context, env *cli.Env, next string, once func() (begun bool, err error)) error {
	pause := firstPause
	for {
		begun, err := once()
		switch {
		case ctx.Err() != nil:
			return nil
		case final(err):
			return err
		case begun:
			pause = firstPause
		}
		fmt.Fprintf(env.Err, "portcullis: %s; %s in %v\n", cli.Plain(cutReason(err)), next, pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, lastPause)
	}
}

// final reports whether an error would be the same at the next attempt.
func final(err error) bool {
	if p, ok := errors.AsType[*v1.Problem](err); ok {
		return p.Status < http.StatusInternalServerError && p.Status != http.StatusTooManyRequests
	}
	if _, ok := errors.AsType[*printError](err); ok {
		return true
	}
	_, ok := errors.AsType[*otherLog](err)
	return ok
}

// printError is a failure to write to standard output.
type printError struct{ error }

// Unwrap returns the cause.
func (e *printError) Unwrap() error { return e.error }

func cutReason(err error) string {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "the connection was cut"
	}
	return err.Error()
}

// followOnce prints the events of one stream, notes in q where it was, and reports whether it began.
func followOnce(ctx context.Context, env *cli.Env, c *client.Client, q *v1.EventWatch) (begun bool, err error) {
	for m, err := range c.Audit().WatchEvents(ctx, *q) {
		if err != nil {
			return begun, err
		}
		if m.Position != "" {
			q.After = m.Position
		}
		switch {
		case m.Begin != nil:
			begun = true
		case m.Gap != nil:
			fmt.Fprintf(env.Err, "portcullis: gap (%s): %s: %s\n", cli.Plain(m.Gap.Reason), cli.Plain(m.Gap.Detail), cli.Plain(m.Gap.Do))
		case m.End != nil:
			return begun, fmt.Errorf("the service ended the stream of events (%s): %s", m.End.Reason, m.End.Do)
		case m.Event != nil:
			if err := printEvent(env, m.Event); err != nil {
				return begun, &printError{err}
			}
		}
	}
	return begun, io.ErrUnexpectedEOF
}

func printEvent(env *cli.Env, e *v1.Event) error {
	if env.JSON() {
		j := terminal.NewEncoder(env.Out)
		j.SetEscapeHTML(false)
		return j.Encode(e)
	}
	line := fmt.Sprintf("%s %s %s (%s)", cli.Stamp(e.Last), e.Severity, e.Type, e.Cause)
	for _, part := range []struct{ name, value string }{{"host", e.Host}, {"adapter", adapterOf(e)}, {"count", strconv.FormatUint(e.Count, 10)}} {
		if part.value != "" {
			line += " " + part.name + " " + part.value
		}
	}
	line += fmt.Sprintf(", says %s: expected %s, seen %s", e.By, e.Expected, e.Seen)
	if e.Do != "" {
		line += "; " + e.Do
	}
	_, err := fmt.Fprintln(env.Out, cli.Plain(line))
	return err
}
