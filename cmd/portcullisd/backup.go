package main

import (
	"path/filepath"

	"portcullis/api/backup"
	"portcullis/api/store/etcd"
	"portcullis/cmd/internal/version"
)

func (s *service) newBackups() *backup.Service {
	c := &s.config.Backup
	to, err := backup.Recipients(c.Recipients)
	if err != nil {
		s.log.Error("no backups are made", "error", err) // check has refused that before
	}
	dir := ""
	if c.Directory != "" {
		dir = filepath.Clean(s.config.Path(c.Directory))
	}
	return backup.New(backup.Options{
		Store: s.store, Recipients: to, Directory: dir, Keep: c.Keep, State: etcd.Format, Version: version.Short(), Log: s.log,
	})
}
