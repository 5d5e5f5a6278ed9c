package portcounters

import (
	"context"
	"log/slog"
	"time"

	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/fabricport"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/transport"
)

// Of returns a Keeper as the configuration wants it, nil where no counters are to be read, or the port has no second attachment.
func Of(c *config.Fabric, view func() (*sm.View, error), log *slog.Logger) (*Keeper, error) {
	if c.PortCounts.Every == 0 || !fabricport.Shared(c.Port) {
		return nil, nil
	}
	return New(Options{
		Every: c.PortCounts.Every, Rate: c.PortCounts.Rate, Timeout: c.Timeout, View: view, Log: log,
		Open: func(ctx context.Context, timeout time.Duration) (transport.Port, error) {
			ctx, cancel := context.WithTimeout(ctx, fabricport.DialTimeout)
			defer cancel()
			return fabricport.Attach(ctx, c.Port, timeout, fabricport.Performance())
		},
	})
}
