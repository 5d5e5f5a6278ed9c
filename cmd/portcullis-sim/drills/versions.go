package drills

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	"filippo.io/age"

	"portcullis/api/backup"
	"portcullis/api/fabric/records"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/drill"
	"portcullis/fabricsm/vault"
)

// mixedVersions is T147: an instance of the next version writes what this one does not know.
func mixedVersions(s *drill.Scene) {
	v := newSite(s, options{credentials: []account{{name: "ann"}}})
	red := v.cluster("ann", "red", "h1", "h5", "h4")
	v.VictimOf("h1", "h5", red)
	v.must("ann", "POST", "/v1/hosts/h4/release", "")
	v.sync()
	v.must("ann", "POST", "/v1/hosts/h4/assign", `{"cluster":"red"}`)
	key := records.Key{PKey: red.Base(), GUID: v.GUID("h4", 1), Place: v.Place("h4", 1)}

	s.Tried("an instance of the next version writes that h4 must not be a member, in a form in which this version reads the opposite")
	v.mark()
	version := 2
	if s.Off(RecordVersions) {
		version = 1
	}
	writeAs(v, records.Grants().Name()+key.String(), version, map[string]any{"of": "h4", "state": "withdrawn", "since": v.clock()})
	_, err := v.turn.Intent(v.ctx())
	s.Check(err != nil, "what the next version wrote is read")
	if in, err := v.turn.Intent(v.ctx()); err == nil {
		v.Want(in)
		v.rounds(1)
	} else {
		v.Run(time.Minute)
		v.Counted(true, "log of the service: %v", err)
	}
	s.Check(len(v.TenantKeys(v.SwitchPort("h4", 1))) == 0 && !v.delivered("h4", "h1", red), "h4 is a member by a record that says that it must not be one")
	if s.Check(v.delivered("h1", "h5", red), "h1 and h5 were cut off because a record could not be read") {
		s.Stopped("a record says its version: one that is too new is not read, and what is in force stays")
	}
	if s.Off(RecordVersions) {
		return
	}
	random := rand.NewChaCha8([32]byte{147, byte(s.Seed())})
	_, err = vault.Open([]byte(`{"version":2,"id":"00000000000000000000000000000000","root":"next","keys":[]}`), newRoot(s, "drill", random), random)
	s.Check(err != nil, "sealed keys of the next version are opened")
	for state, want := range map[int]bool{1: true, 2: false} {
		err := restoresState(v, state)
		s.Check((err == nil) == want, "a backup with records of format %d is restored: %v", state, err)
	}

	s.Tried("the upgrade is taken back")
	_, err = v.store.Update(v.ctx(), func(tx *store.Tx) error {
		records.Grants().Delete(tx, key.String())
		return nil
	})
	s.Must(err)
	v.settled("h4")
	s.Check(v.delivered("h4", "h1", red), "h4 does not reach h1 after the upgrade was taken back")
}

// restoresState reports why a backup of a program whose records have some format is not restored by this one.
func restoresState(v *site, state int) error {
	id, err := age.GenerateX25519Identity()
	v.scene.Must(err)
	var file bytes.Buffer
	keeper := backup.New(backup.Options{Store: v.store, Recipients: []*age.X25519Recipient{id.Recipient()}, State: state, Version: "next", Log: slog.New(slog.DiscardHandler), Now: v.clock})
	v.scene.Must(keeper.Stream(v.ctx(), "ann", func(v1.Backup) io.Writer { return &file }))
	_, _, err = backup.Restore(v.ctx(), backup.RestoreOptions{
		Store: store.New(memory.New(v.clock), ""), File: bytes.NewReader(file.Bytes()), Size: int64(file.Len()), Identities: []age.Identity{id}, State: 1, Actor: "local:root", Now: v.clock(),
	})
	return err
}

// writeAs writes a record as an instance of some version does.
func writeAs(v *site, key string, version int, record any) {
	data, err := json.Marshal(map[string]any{"v": version, "d": record})
	v.scene.Must(errors.Join(err, v.store.Load(v.ctx(), []store.Item{{Key: key, Value: data}})))
}
