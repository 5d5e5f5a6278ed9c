package drills

import (
	"bytes"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"filippo.io/age"

	"portcullis/api/backup"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/drill/threats"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/mkeys"
)

// stolenDisk is T135: a thief has the disk of the service's machine, and a day later all that the machine knew.
func stolenDisk(s *drill.Scene) {
	v := newSite(s, options{
		fabric:      drill.SiteOptions{SM: sm.Config{MKey: mkeys.Config{Rotation: keys.RotationConfig{Period: 20 * time.Minute, Grace: 2 * time.Minute, Window: 4}}}},
		credentials: []account{{name: "ops"}},
	})
	red := v.cluster("ops", "red", "h1", "h5")
	v.VictimOf("h1", "h5", red)
	random := rand.NewChaCha8([32]byte{135, byte(s.Seed())})
	root := newRoot(s, "drill", random)
	v.keep(root, random)

	s.Tried("a thief has the disk, without what is in the TPM or the service for keys, and tries from h7 what looks like a key")
	v.mark()
	disk := v.kept.Dump()
	for _, key := range v.everyKey() {
		if leaked(disk, key.Reveal()) != "" {
			s.Check(false, "a key of a device is on the disk as it is")
			threats.TryKeys(v.Site, "h7", v.live())
			return
		}
	}
	v.wrongRoot(random)

	s.Tried("the thief has the memory of the machine, too, and so each key that devices have; the keys change, as they do every twenty minutes, and then the thief comes")
	var stolen []ib.MKey
	for _, key := range v.everyKey() {
		stolen = append(stolen, key.M())
	}
	v.Run(time.Hour)
	s.Must(v.Settle(time.Minute))
	v.sync()
	v.keep(root, random)
	v.Attack()
	threats.TryKeys(v.Site, "h7", stolen)
	s.Check(len(stolen) > 10, "%d keys were tried, so nothing is proven", len(stolen))
	s.Stopped("the disk has sealed records alone, and %d keys that were stolen from memory opened nothing once they had changed", len(stolen))
	v.Reported(time.Minute, "that the port tries keys", anyEvent)
	v.restored(root, random)
}

// anyEvent is for reports of which the kind does not matter.
func anyEvent(sm.Event) bool { return true }

// stolenBackup is T136: a thief has a backup.
func stolenBackup(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ann"}}})
	red := v.cluster("ann", "crown-jewels", "h1", "h5")
	v.VictimOf("h1", "h5", red)
	random := rand.NewChaCha8([32]byte{136, byte(s.Seed())})
	v.keep(newRoot(s, "drill", random), random)
	offline, err := age.GenerateX25519Identity()
	s.Must(err)
	thief, err := age.GenerateX25519Identity()
	s.Must(err)
	to := []*age.X25519Recipient{offline.Recipient()}
	if s.Off(BackupRecipients) {
		to = append(to, thief.Recipient())
	}
	v.mark()
	var file bytes.Buffer
	keeper := backup.New(backup.Options{Store: v.store, Recipients: to, State: 1, Version: "drill", Log: slog.New(slog.DiscardHandler), Now: v.clock})
	s.Must(keeper.Stream(v.ctx(), "ann", func(v1.Backup) io.Writer { return &file }))

	s.Tried("a thief has a backup: looks for names and keys in it, tries to restore it with an identity of his own, and changes it")
	for _, word := range []string{"crown-jewels", v.tokens["ann"], "h5"} {
		if len(word) > 4 {
			s.Check(!bytes.Contains(file.Bytes(), []byte(word)), "the backup has a name or a token in it as it is")
		}
	}
	for _, secret := range v.secrets() {
		form := leaked(file.Bytes(), secret)
		s.Check(form == "", "a key is in the backup, %s", form)
	}
	restore := func(data []byte, id age.Identity) (*store.Store, error) {
		into := store.New(memory.New(v.clock), "")
		_, _, err := backup.Restore(v.ctx(), backup.RestoreOptions{
			Store: into, File: bytes.NewReader(data), Size: int64(len(data)), Identities: []age.Identity{id}, State: 1, Actor: "local:root", Now: v.clock(),
		})
		return into, err
	}
	_, err = restore(file.Bytes(), thief)
	if s.Check(err != nil, "the thief reads the backup with an identity of his own") {
		s.Stopped("a backup is encrypted to identities that are kept elsewhere")
	}
	for what, at := range map[string]int{"in the middle": file.Len() / 2, "near the end": file.Len() - 9} {
		changed := bytes.Clone(file.Bytes())
		changed[at] ^= 1
		_, err := restore(changed, offline)
		s.Check(err != nil, "a backup that was changed %s is restored", what)
	}
	_, err = restore(file.Bytes()[:file.Len()-200], offline)
	s.Check(err != nil, "a backup that was cut is restored")
	into, err := restore(file.Bytes(), offline)
	if s.Check(err == nil, "the owner does not restore the backup: %v", err) {
		text, err := into.Snapshot(v.ctx())
		s.Must(err)
		items, err := text.Items(v.ctx(), "", 1<<20)
		s.Must(err)
		for _, i := range items {
			for _, secret := range v.secrets() {
				s.Check(leaked(i.Value, secret) == "", "a key is in the restored record %s as it is", i.Key)
			}
		}
		s.Stopped("in it, keys are sealed under a root that is in no backup")
	}
	v.Counted(v.logged(func(actor, action string) bool { return actor == "ann" && action == "backup.stream" }), "audit log: ann, backup.stream")
}
