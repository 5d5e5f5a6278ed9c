package smrole

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"

	"portcullis/api/fabric"
	"portcullis/api/fabric/owed"
	"portcullis/api/store"
	"portcullis/cmd/portcullisd/readiness"
	"portcullis/fabricsm/driver/keystore"
	"portcullis/fabricsm/sm"
)

// Facts returns the facts of the service, whose keys are sealed.
func Facts(st *store.Store, k *owed.Keeper, log *slog.Logger) ([]sm.Fact, error) {
	return fabric.New(fabric.Options{Store: st, Log: log, Owed: k}).Load()
}

// Begin reports, at the start of the service, how the devices of the fabric are protected. Readiness has the fabric as not
// attached from then on.
func (r *Role) Begin(ctx context.Context) {
	r.checkRoot()
	core := r.Declared.With(ctx, r.InUse.Core())
	for _, n := range r.Config.Fabric.Keys.KeyNotices(&core) {
		r.Log.Warn(n)
	}
	if r.Config.Fabric.Enforcement != "verified" {
		r.Log.Warn("fabric.enforcement is accepted: switches are believed to enforce P_Keys without proof; for simulators only")
	}
	r.State.Set(readiness.Unattached) // else the service would be ready in every part until Run says so
}

// checkRoot logs, when the service starts, whether the root of this machine opens the
// keys of devices that the store has. The root is a file on each machine with the sm
// role, and must be the same on all: where it is another one, the machine can't manage
// the fabric, which must be known before it has to.
func (r *Role) checkRoot() {
	k := &r.Config.Fabric.Keys
	if !k.ManagesKeys() {
		return
	}
	found, err := r.rootOpens()
	switch {
	case err != nil:
		err = fmt.Errorf("fabric.keys.root: this machine does not open the keys of devices in the store: %w", err)
		r.Log.Error("this machine cannot manage the fabric", "error", err, "hint", "bring the root here that the other machines have; it is the same on all")
		r.Keys(err.Error())
	case found:
		r.Log.Info("the root opens the keys of devices in the store", "root", k.Root)
	}
}

func (r *Role) rootOpens() (found bool, _ error) {
	root, err := r.Config.Fabric.Keys.OpenRoot(r.Config.Path)
	if err != nil {
		return false, err
	}
	facts, err := Facts(r.Store, r.Owed, r.Log)
	if err != nil {
		return false, err
	}
	return keystore.Check(facts, root, rand.Reader)
}
