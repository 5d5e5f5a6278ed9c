package config

import (
	"portcullis/api/backup"
)

// Backup sets the recipients that backups are encrypted to, and where they are kept.
type Backup struct {
	Recipients []string `yaml:"recipients"`
	Directory  string   `yaml:"directory"`
	Keep       int      `yaml:"keep"`
}

// maxKeep bounds the files of a directory that a list shows.
const maxKeep = 10_000

func (k *checker) backup(b *Backup) {
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
