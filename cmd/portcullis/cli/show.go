package cli

import (
	"context"

	"portcullis/api/client"
)

// Show asks the service for one object or has it changed, and prints it.
func Show[T any](ctx context.Context, env *Env, do func(context.Context, *client.Client) (*T, error), table func(*Columns, *T)) error {
	c, err := env.Connect()
	if err != nil {
		return err
	}
	r, err := do(ctx, c)
	if err != nil {
		return err
	}
	return env.Print(r, func(w *Columns) { table(w, r) })
}
