// Package reason carries why a request was sent, in the words of its caller, from the protocol to the audit log.
package reason

import "context"

type key struct{}

// With returns a context for a request with a reason: text that can be printed, in one line.
func With(ctx context.Context, text string) context.Context {
	return context.WithValue(ctx, key{}, text)
}

// Of returns the reason of the request that ctx is of, "" without one.
func Of(ctx context.Context) string {
	text, _ := ctx.Value(key{}).(string)
	return text
}
