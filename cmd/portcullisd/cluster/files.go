package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"portcullis/api/store/etcd"
	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullisd/command"
	"portcullis/cmd/portcullisd/config"
	"portcullis/cmd/portcullisd/newfile"
)

// Invitation is what an operator carries to a machine that joins. It has the key of its
// certificate, so the file has mode 0600.
type Invitation struct {
	Version int      `json:"version"`
	Name    string   `json:"name"`
	Peer    string   `json:"peer"`
	Client  string   `json:"client"`
	Clients []string `json:"clients"` // client URLs of members
	CA      string   `json:"ca"`      // PEM
	Cert    string   `json:"cert"`    // PEM
	Key     string   `json:"key"`     // PEM
	Revoked []byte   `json:"revoked"` // DER
}

// invitationVersion is that of the format.
const invitationVersion = 1

// maxInvitation bounds the file.
const maxInvitation = 2 << 20

func readInvitation(file string) (*Invitation, error) {
	if err := input.CheckPrivate(file); err != nil {
		return nil, err
	}
	data, err := input.ReadFile(file, maxInvitation)
	if err != nil {
		return nil, fmt.Errorf("read the invitation: %w", err)
	}
	inv := &Invitation{}
	if err := json.Unmarshal(data, inv); err != nil {
		return nil, fmt.Errorf("%s is no invitation: %w", file, err)
	}
	if inv.Version != invitationVersion {
		return nil, fmt.Errorf("%s: invitation of version %d: this release reads version %d", file, inv.Version, invitationVersion)
	}
	err = errors.Join(config.CheckMemberName(inv.Name), etcd.CheckURL(inv.Peer), etcd.CheckURL(inv.Client))
	for _, c := range inv.Clients {
		err = errors.Join(err, etcd.CheckURL(c))
	}
	if len(inv.Clients) == 0 || len(inv.Clients) > 2*etcd.MaxMembers {
		err = errors.Join(err, errors.New("it names no member to ask, or too many"))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return inv, nil
}

// files returns what a machine that joins keeps.
func (inv *Invitation) files(c *config.Config) []memberFile {
	m := &c.Cluster
	return []memberFile{
		{c.Path(m.CA), []byte(inv.CA), 0o644},
		{c.Path(m.Cert), []byte(inv.Cert), 0o644},
		{c.Path(m.Key), []byte(inv.Key), 0o600},
		{c.Path(m.Revoked), inv.Revoked, 0o644},
	}
}

// writeMember writes files that must not exist, and directories around them. With an
// error none is left.
func writeMember(c *config.Config, files []memberFile) (made []string, err error) {
	for _, f := range files {
		if err = os.MkdirAll(filepath.Dir(f.name), 0o755); err == nil {
			err = newfile.Write(f.name, f.data, f.mode)
		}
		if err != nil {
			err = command.Hint(errors.Join(err, removeAll(made)), "files of another cluster may be there: "+filepath.Dir(c.Path(c.Cluster.CA)))
			return nil, err
		}
		made = append(made, f.name)
	}
	return made, nil
}

func removeAll(names []string) (err error) {
	for _, name := range names {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// writeWhole replaces a file, or makes it. One that was there keeps its mode and owner.
func writeWhole(name string, data []byte, mode fs.FileMode) error {
	return renameio.WriteFile(name, data, mode, renameio.WithExistingPermissions())
}

// joinedCluster is what the service and the commands of a machine that joined begin with.
type joinedCluster struct {
	etcd.Join
	Clients []string `json:"clients"` // client URLs of members, for commands
}

func encodeJoin(j *etcd.Join, clients []string) ([]byte, error) {
	return json.Marshal(joinedCluster{*j, clients})
}

// knownClients returns the client URLs of other members as of when this one joined.
func knownClients(file string) []string {
	data, err := input.ReadFile(file, maxInvitation)
	var j joinedCluster
	if err != nil || json.Unmarshal(data, &j) != nil {
		return nil // the first member has no such file
	}
	return j.Clients
}

// withSection returns a configuration with values of a section changed. The result must be valid.
func withSection(file, section string, values map[string]string) ([]byte, error) {
	data, err := config.Read(file)
	if err != nil {
		return nil, err
	}
	left := maps.Clone(values)
	var lines []string
	inside, end := false, -1
	for line := range strings.Lines(string(data)) {
		key, _, ok := strings.Cut(line, ":")
		if ok && !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "#") {
			inside = strings.TrimRight(line, " \r\n") == section+":"
			if inside {
				end = len(lines) + 1
			}
		}
		name := strings.TrimSpace(key)
		if v, known := left[name]; inside && ok && known && strings.HasPrefix(line, " ") {
			line = fmt.Sprintf("%s: %q\n", key, v)
			delete(left, name)
		}
		if !strings.HasSuffix(line, "\n") {
			line += "\n"
		}
		lines = append(lines, line)
	}
	var add []string
	for _, k := range slices.Sorted(maps.Keys(left)) {
		add = append(add, fmt.Sprintf("  %s: %q\n", k, left[k]))
	}
	if end < 0 {
		lines, end = append(lines, section+":\n"), len(lines)+1
	}
	out := []byte(strings.Join(slices.Insert(lines, end, add...), ""))
	if _, err := config.Parse(file, out); err != nil {
		return nil, command.Hint(err, "nothing was written; the section "+section+" is to be written by hand, or its values are wrong")
	}
	return out, nil
}

// memberFile is a file that a member needs.
type memberFile struct {
	name string
	data []byte
	mode fs.FileMode
}
