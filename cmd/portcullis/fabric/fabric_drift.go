package fabric

import (
	"context"
	"errors"
	"time"

	"portcullis/cmd/portcullis/cli"

	v1 "portcullis/api/v1"
)

// errOldReading is why nothing is compared.
var errOldReading = errors.New("the newest reading is older than it counts for")

// showDrift prints how the fabric differs from what is wanted.
func showDrift(ctx context.Context, env *cli.Env, q v1.DriftQuery) error {
	c, err := env.Connect()
	if err != nil {
		return cli.NotCompared(err)
	}
	list, err := c.Drift(ctx, q)
	if err != nil {
		return cli.NotCompared(err)
	}
	if err := env.Print(list, func(w *cli.Columns) { printDrift(w, list) }); err != nil {
		return cli.NotCompared(err)
	}
	switch {
	case !list.Current:
		return cli.NotCompared(cli.Hint(errOldReading, "portcullis verify reads the fabric now"))
	case len(list.Items) > 0:
		return cli.ErrNo
	default:
		return nil
	}
}

func printDrift(w *cli.Columns, list *v1.DriftList) {
	showAge(w, list.Age, list.MaxAge, list.Current, "")
	if list.Again != nil {
		w.Text("what the Subnet Manager touched since was read at %s", list.Again.Format(time.RFC3339))
	}
	w.Gap()
	if len(list.Items) == 0 {
		w.Text("no difference")
		return
	}
	w.Row("HOST", "PORT", "AT", "IN", "KIND", "P_KEY", "FOUND", "SINCE")
	for i := range list.Items {
		d := &list.Items[i]
		pkey := ""
		if d.PKey != 0 {
			pkey = d.PKey.String()
		}
		w.Row(d.Host, cli.GUID(d.GUID), cli.Place(d.Place), d.In, d.Kind, pkey, d.Found, d.Since.Format(time.RFC3339))
	}
}
