package main

import (
	"path/filepath"

	"portcullis/api/backup"
	"portcullis/api/store/etcd"
	"portcullis/cmd/internal/version"
)

// backupConfig sets the recipients that backups are encrypted to, and where they are kept.
type backupConfig struct {
	Recipients []string `yaml:"recipients"`
	Directory  string   `yaml:"directory"`
	Keep       int      `yaml:"keep"`
}

// maxKeep bounds the files of a directory that a list shows.
const maxKeep = 10_000

func (k *checker) backup(b *backupConfig) {
	if _, err := backup.Recipients(b.Recipients); err != nil {
		k.wrong("backup.recipients", "%v", err)
	}
	if len(b.Recipients) > 32 {
		k.wrong("backup.recipients", "%d of them: want 32 at most", len(b.Recipients))
	}
	if b.Directory != "" && len(b.Recipients) == 0 {
		k.wrong("backup.recipients", "is empty: backups are never written in clear; make an identity with age-keygen on a machine that is offline, and name its public key")
	}
	if b.Keep < 0 || b.Keep > maxKeep {
		k.wrong("backup.keep", "%d: want 0 to %d", b.Keep, maxKeep)
	}
}

func (s *service) newBackups() *backup.Service {
	c := &s.config.Backup
	to, err := backup.Recipients(c.Recipients)
	if err != nil {
		s.log.Error("no backups are made", "error", err) // check has refused that before
	}
	dir := ""
	if c.Directory != "" {
		dir = filepath.Clean(s.config.path(c.Directory))
	}
	return backup.New(backup.Options{
		Store: s.store, Recipients: to, Directory: dir, Keep: c.Keep, State: etcd.Format, Version: version.Short(), Log: s.log,
	})
}
