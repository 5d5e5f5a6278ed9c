package inputs

import (
	"context"
	"log/slog"

	"portcullis/cmd/portcullisd/config"
	"portcullis/fabricsm/sm"
)

// ApplyPolicy passes the Subnet Manager its new policy, and reports what waits for a restart.
func ApplyPolicy(ctx context.Context, r *config.Change, k *Operator, log *slog.Logger, file string) {
	ctx, cancel := context.WithTimeout(ctx, MaxWait)
	defer cancel()
	for _, key := range r.Restart {
		log.Warn(key+" changed: restart to apply", "file", file)
	}
	if err := k.Pass(ctx, &sm.PolicySet{Policy: r.Policy}); err != nil {
		log.Warn("the subnet manager takes the configuration when it attaches", "reason", err)
		return
	}
	log.Warn("the configuration was read again", "file", file, "changed", r.Live, "engines_anew", r.Policy.Engines != nil)
}
