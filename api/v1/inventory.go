package v1

// ImportReport says what an inventory import did, or would do in a dry run.
// An import is all or nothing, and it never removes a host: hosts that the
// files leave out are listed, not touched.
type ImportReport struct {
	DryRun    bool         `json:"dry_run"`
	Revision  int64        `json:"revision,omitzero"` // store revision of the import; 0 in a dry run and when nothing changed
	Added     []string     `json:"added"`             // host ids, sorted
	Changed   []HostChange `json:"changed"`           // sorted by host
	Unchanged int          `json:"unchanged"`         // hosts in the files that already are so
	NotInFile []string     `json:"not_in_file"`       // hosts in the store that no file names, left alone; sorted
}

// HostChange is one host whose record an import changes.
type HostChange struct {
	Host   string   `json:"host"`
	Fields []string `json:"fields"` // "ek_sha256: was X, now Y", one sentence each
}
