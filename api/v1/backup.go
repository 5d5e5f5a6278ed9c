package v1

import "time"

// Backup is a file with all records of the store as of one revision, encrypted to recipients. It holds keys of
// devices, sealed under keys.root, and not keys.root.
type Backup struct {
	Name       string    `json:"name,omitempty" doc:"file in the service's directory of backups; none: it was streamed"`
	Time       time.Time `json:"time"`
	Origin     string    `json:"origin" doc:"hash of the first entry of the audit log: says which installation"`
	Revision   int64     `json:"revision" doc:"of the store"`
	Audit      AuditHead `json:"audit" doc:"last entry of the audit log in it"`
	Format     int       `json:"state_format"`
	Program    string    `json:"program" doc:"version that made it"`
	Recipients []string  `json:"recipients" nullable:"false" doc:"age recipients whose identities open it"`
	Size       int64     `json:"size,omitempty" doc:"bytes"`
	Records    int64     `json:"records,omitempty" doc:"when it was just made"`
	SHA256     string    `json:"sha256,omitempty" doc:"of the file but for its last line, when it was made or verified"`
	Problem    string    `json:"problem,omitempty" doc:"why the file is no whole backup"`
}
