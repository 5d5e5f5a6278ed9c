package drills

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"filippo.io/age"

	"portcullis/api/admission"
	"portcullis/api/backup"
	"portcullis/api/fabric"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sm"
)

// restoredBackup is T144: a backup of yesterday is restored. A host released since must not come back, and a host admitted
// since must not be cut off before a person has decided.
func restoredBackup(s *drill.Scene) {
	v := newSite(s, options{
		fabric:      drill.SiteOptions{SM: sm.Config{IntentWait: time.Minute}}, // tables are left as they are until the intent comes
		credentials: []account{{name: "ann"}},
	})
	id, err := age.GenerateX25519Identity()
	s.Must(err)
	red := v.cluster("ann", "red", "h1", "h5", "h4")
	var file bytes.Buffer
	keeper := backup.New(backup.Options{
		Store: v.store, Recipients: []*age.X25519Recipient{id.Recipient()}, State: 1, Version: "drill", Log: slog.New(slog.DiscardHandler), Now: v.clock,
	})
	s.Must(keeper.Stream(v.ctx(), "ann", func(v1.Backup) io.Writer { return &file }))

	v.must("ann", "POST", "/v1/hosts/h4/release", "")
	v.sync()
	blue := v.cluster("ann", "blue", "h2", "h6")
	v.VictimOf("h1", "h5", red)
	stop := v.VictimUntil("h2", "h6", blue)
	s.Check(len(v.TenantKeys(v.SwitchPort("h4", 1))) == 0, "h4 was released, and its switch port holds %v", v.TenantKeys(v.SwitchPort("h4", 1)))

	s.Tried("a backup is restored that is older than the release of h4 and than cluster blue")
	v.Attack()
	v.restore(file.Bytes(), id, s.Off(RestoreReview))
	v.sync()
	s.Check(len(v.TenantKeys(v.SwitchPort("h4", 1))) == 0, "the switch port of h4, which was released, holds %v", v.TenantKeys(v.SwitchPort("h4", 1)))
	s.Check(!v.delivered("h4", "h1", red), "h4, which was released, reaches h1 of cluster red")
	s.Check(v.delivered("h1", "h5", red), "h1 and h5, on which backup and fabric agree, do not reach each other")
	s.Check(v.delivered("h2", "h6", blue), "h2 and h6, which were admitted since the backup was made, were cut off without a person")
	if !s.Off(RestoreReview) {
		s.Stopped("what the switch ports do not have is not granted, and what they have and no record explains stays until it was decided")
	}
	stop() // from here on they are to lose their partition
	v.decideRestore(red, blue)
}

// decideRestore is the part of T144 in which an operator decides.
func (v *site) decideRestore(red, blue ib.PKey) {
	s := v.scene
	r, err := v.admission.Review(v.ctx())
	s.Must(err)
	kinds := map[string]string{}
	for _, d := range r.Differences {
		kinds[d.Host] += d.Kind
	}
	want := map[string]string{"h4": "state-only", "h2": "fabric-only", "h6": "fabric-only"}
	v.Counted(r.Active && fmt.Sprint(kinds) == fmt.Sprint(want) && r.Agreed == 2, "the review lists %v, and %d memberships that agree", kinds, r.Agreed)
	if !s.Check(r.Active, "the restored state is not in review") {
		return
	}
	v.refused("in_review", "ann", "POST", "/v1/clusters", `{"name":"green","tenant":"red"}`)
	v.refused("review_open", "ann", "POST", "/v1/review/end", `{"reason":"hurry"}`)

	s.Tried("an operator asks for h4 to be admitted during the review")
	v.must("ann", "POST", "/v1/hosts/h4/release", "")
	v.sync()
	v.must("ann", "POST", "/v1/hosts/h4/assign", `{"cluster":"red"}`)
	v.attested("h4")
	v.sync()
	s.Check(len(v.TenantKeys(v.SwitchPort("h4", 1))) == 0, "h4 was admitted during the review: its switch port holds %v", v.TenantKeys(v.SwitchPort("h4", 1)))

	v.must("ann", "POST", "/v1/review/reject", `{"hosts":["h2","h6"],"reason":"blue is created again"}`)
	v.must("ann", "POST", "/v1/review/approve", `{"hosts":["h4"],"reason":"it is in red again"}`)
	v.sync()
	for _, h := range []string{"h2", "h6"} {
		s.Check(len(v.TenantKeys(v.SwitchPort(h, 1))) == 0, "%s was rejected, and its switch port holds %v", h, v.TenantKeys(v.SwitchPort(h, 1)))
	}
	s.Check(slices.Equal(v.TenantKeys(v.SwitchPort("h4", 1)), []ib.PKey{red}), "h4 was approved, and its switch port holds %v", v.TenantKeys(v.SwitchPort("h4", 1)))
	v.must("ann", "POST", "/v1/review/end", `{"reason":"all was decided"}`)
	v.sync()
	s.Check(v.delivered("h1", "h5", red) && v.delivered("h4", "h1", red), "hosts of cluster red do not reach each other after the review")
	s.Check(!v.delivered("h2", "h6", blue), "h2 and h6 are in a partition that no record has")
}

// restore restarts service and Subnet Manager with a store that a backup was restored into. trusted has it count as it is.
func (v *site) restore(file []byte, id age.Identity, trusted bool) {
	v.kept = memory.New(v.clock)
	to := store.New(v.kept, "")
	_, _, err := backup.Restore(v.ctx(), backup.RestoreOptions{
		Store: to, File: bytes.NewReader(file), Size: int64(len(file)), Identities: []age.Identity{id}, State: 1, Actor: "local:root", Now: v.clock(),
	})
	v.scene.Must(err)
	v.serve(to, func(o *fabric.Options) { o.TrustsState = trusted })
	v.Crash()
	v.Start()
}

// serve makes admission, the link to the Subnet Manager and the API over a store.
func (v *site) serve(on *store.Store, edit func(*fabric.Options)) {
	log := slog.New(slog.NewTextHandler(&v.said, &slog.HandlerOptions{Level: slog.LevelDebug}))
	v.store = on
	v.admission = admission.New(admission.Options{Store: on, Policy: attest.DefaultPolicy(), Log: log, Now: v.clock, Root: v.options.Root})
	o := fabric.Options{Store: on, Log: log, Now: v.clock}
	edit(&o)
	v.turn = fabric.NewTurn(o)
	v.serveAPI(log)
}
