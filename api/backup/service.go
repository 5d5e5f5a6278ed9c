// Package backup makes backups of the store while everything runs, and writes them back into an empty one. The file is
// that of package archive.
//
// A backup is what the store has at one revision, read in pages, so that its memory does not grow with the store. It works over
// every store.Backend. keys.root and the key that signs tokens are files of the machine and in no backup; an
// escrow kit has the keys of devices without keys.root.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"portcullis/api/audit"
	"portcullis/api/backup/archive"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
)

// pageSize is how many records are read from the store at once.
const pageSize = 100

// Suffix ends the name of each file in the directory.
const Suffix = ".portcullis-backup"

// Options configure a Service. Store, Recipients and Log are required.
type Options struct {
	Store      *store.Store
	Recipients []*age.X25519Recipient
	Directory  string // of files; empty: backups are streamed only
	Keep       int    // files in Directory; the oldest beyond them are removed once a new one is whole; 0: all stay
	State      int    // format of what the records mean
	Version    string // of the program
	Log        *slog.Logger
	Now        func() time.Time // default time.Now
}

// Service makes and lists backups. Its methods are safe for concurrent use.
type Service struct {
	o    Options
	turn chan struct{} // holds one token while a backup is made
}

// New makes a Service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{o: o, turn: make(chan struct{}, 1)}
}

func (s *Service) now() time.Time { return s.o.Now().UTC().Round(0) }

// Recipients reads age recipients, "age1...".
func Recipients(list []string) ([]*age.X25519Recipient, error) {
	var out []*age.X25519Recipient
	for i, text := range list {
		r, err := age.ParseX25519Recipient(text)
		if err != nil {
			return nil, fmt.Errorf("recipient %d of %d: want age1..., as age-keygen prints it after \"public key:\"", i+1, len(list)) // it may be a secret
		}
		out = append(out, r)
	}
	return out, nil
}

// begin takes the turn. A backup reads the whole store: one at a time is enough.
func (s *Service) begin() (end func(), err error) {
	if len(s.o.Recipients) == 0 {
		return nil, &refusal.Error{
			Code: "no_recipients", Status: refusal.Conflict, Detail: "no recipient of backups is configured, and a backup is never written in clear",
			Hint: "make an identity with age-keygen on a machine that is offline, and name its public key in backup.recipients",
		}
	}
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	default:
		return nil, &refusal.Error{Code: "backup_running", Status: refusal.Conflict, Detail: "another backup is being made", Hint: "wait until it is done"}
	}
}

// Create writes a backup into the directory.
func (s *Service) Create(ctx context.Context, actor string) (*v1.Backup, error) {
	if s.o.Directory == "" {
		return nil, noDirectory()
	}
	end, err := s.begin()
	if err != nil {
		return nil, err
	}
	defer end()
	f, err := os.CreateTemp(s.o.Directory, ".making-*")
	if err != nil {
		return nil, unusable(err)
	}
	defer os.Remove(f.Name()) // renamed when it is whole
	b, err := s.write(ctx, f)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, unusable(err)
	}
	b.Name = fmt.Sprintf("%s-%d%s", b.Time.Format("20060102T150405Z"), b.Revision, Suffix)
	if err := s.note(ctx, actor, "backup.create", b); err != nil {
		return nil, err
	}
	if err := os.Rename(f.Name(), filepath.Join(s.o.Directory, b.Name)); err != nil {
		return nil, unusable(err)
	}
	if err := s.prune(); err != nil {
		s.o.Log.Error("old backups were not removed", "directory", s.o.Directory, "error", err)
	}
	return b, nil
}

// Stream writes a backup to w. With an error w may hold a part of it, which has no last line.
func (s *Service) Stream(ctx context.Context, actor string, w func(v1.Backup) io.Writer) error {
	end, err := s.begin()
	if err != nil {
		return err
	}
	defer end()
	snap, h, err := s.snapshot(ctx)
	if err != nil {
		return err
	}
	b := of(&h)
	// The entry comes first: the reader of the stream may have all of it although this end sees an error.
	if err := s.note(ctx, actor, "backup.stream", b); err != nil {
		return err
	}
	_, _, err = s.copy(ctx, w(*b), snap, h)
	return err
}

func (s *Service) note(ctx context.Context, actor, action string, b *v1.Backup) error {
	detail := fmt.Sprintf("revision %d, audit entry %d, for %s", b.Revision, b.Audit.Seq, strings.Join(s.names(), " "))
	if b.SHA256 != "" {
		detail += fmt.Sprintf("; %d records, SHA-256 %s", b.Records, b.SHA256)
	}
	_, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
		return audit.Append(ctx, tx, audit.Entry{Time: s.now(), Actor: actor, Action: action, Object: strings.TrimSuffix("backup/"+b.Name, "/"), Detail: detail})
	})
	if err != nil {
		return refusal.Unconfirmed(err, "the backup was not kept, since the audit log could not take it")
	}
	return nil
}

func (s *Service) names() []string {
	out := make([]string, len(s.o.Recipients))
	for i, r := range s.o.Recipients {
		out[i] = r.String()
	}
	return out
}

func (s *Service) snapshot(ctx context.Context) (snap store.Snapshot, h archive.Header, err error) {
	if snap, err = s.o.Store.Snapshot(ctx); err != nil {
		return snap, h, refusal.Unconfirmed(err, "nothing was written; try again")
	}
	head, err := audit.Latest(ctx, snap)
	if err != nil {
		return snap, h, err
	}
	h = archive.Header{Time: s.now(), Revision: snap.Revision, Audit: head, State: s.o.State, Program: s.o.Version}
	h.Origin, err = audit.Origin(ctx, snap)
	return snap, h, err
}

func (s *Service) write(ctx context.Context, w io.Writer) (*v1.Backup, error) {
	snap, h, err := s.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	counted := &counter{w: w}
	b := of(&h)
	b.Records, b.SHA256, err = s.copy(ctx, counted, snap, h)
	b.Size, b.Recipients = counted.n, s.names()
	return b, err
}

// copy writes all records of the snapshot.
func (s *Service) copy(ctx context.Context, w io.Writer, snap store.Snapshot, h archive.Header) (records int64, digest string, err error) {
	out, err := archive.NewWriter(w, h, s.o.Recipients...)
	if err != nil {
		return 0, "", err
	}
	for after := ""; ; {
		page, err := snap.Items(ctx, after, pageSize)
		if err != nil {
			return 0, "", err
		}
		for _, i := range page {
			if err := out.Add(archive.Item{Key: i.Key, Value: i.Value}); err != nil {
				return 0, "", err
			}
			after = i.Key
		}
		if len(page) < pageSize {
			return out.Close()
		}
	}
}

// counter counts what is written.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}

func of(h *archive.Header) *v1.Backup {
	return &v1.Backup{
		Time: h.Time, Origin: h.Origin, Revision: h.Revision, Audit: v1.AuditHead(h.Audit), Format: h.State, Program: h.Program,
		Recipients: append([]string{}, h.Recipients...),
	}
}

// List lists the files of the directory, the newest first.
func (s *Service) List(context.Context) (*v1.List[v1.Backup], error) {
	out := &v1.List[v1.Backup]{Items: []v1.Backup{}}
	names, err := s.files()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		out.Items = append(out.Items, s.show(name, false))
	}
	slices.SortStableFunc(out.Items, func(a, b v1.Backup) int { return b.Time.Compare(a.Time) })
	return out, nil
}

// Newest returns the time of the newest file that is readable, zero if there is none. configured is false without a directory.
func (s *Service) Newest() (newest time.Time, configured bool, err error) {
	names, err := s.files()
	for _, name := range slices.Backward(names) {
		if b := s.show(name, false); b.Problem == "" {
			return b.Time, true, nil
		}
	}
	return time.Time{}, s.o.Directory != "", err
}

// files lists names, the oldest first.
func (s *Service) files() ([]string, error) {
	if s.o.Directory == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(s.o.Directory)
	if err != nil {
		return nil, unusable(err)
	}
	var out []string
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), Suffix) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// show describes a file, and verifies its digest if asked to.
func (s *Service) show(name string, verify bool) v1.Backup {
	f, err := os.Open(filepath.Join(s.o.Directory, name))
	if err != nil {
		return v1.Backup{Name: name, Recipients: []string{}, Problem: err.Error()}
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return v1.Backup{Name: name, Recipients: []string{}, Problem: err.Error()}
	}
	var h archive.Header
	digest := ""
	if verify {
		h, digest, err = archive.Digest(f, info.Size())
	} else {
		h, err = archive.ReadHeader(f)
	}
	b := of(&h)
	b.Name, b.Size, b.SHA256 = name, info.Size(), digest
	if err != nil {
		b.Problem = err.Error()
	}
	return *b
}

// Verify verifies the digest of a file of the directory. The content is verified offline, with an identity.
func (s *Service) Verify(_ context.Context, name string) (*v1.Backup, error) {
	if err := s.known(name); err != nil {
		return nil, err
	}
	b := s.show(name, true)
	if b.Problem != "" {
		return nil, &refusal.Error{Code: "backup_damaged", Status: refusal.Conflict, Detail: name + ": " + b.Problem, Hint: "make another backup, and find out what damages files there"}
	}
	return &b, nil
}

// Open opens a file of the directory, for the caller to close.
func (s *Service) Open(name string) (io.ReadCloser, error) {
	if err := s.known(name); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(s.o.Directory, name))
	if err != nil {
		return nil, unusable(err)
	}
	return f, nil
}

// known refuses names that are not in the directory: no path leads out of it.
func (s *Service) known(name string) error {
	names, err := s.files()
	if err == nil && !slices.Contains(names, name) {
		err = &refusal.Error{Code: "backup_unknown", Status: refusal.NotFound, Detail: fmt.Sprintf("no backup %.100q in the service's directory", name), Hint: "portcullis backup list shows them"}
	}
	return err
}

// prune removes the oldest files beyond Keep. Only whole ones count.
func (s *Service) prune() error {
	if s.o.Keep <= 0 {
		return nil
	}
	all, err := s.List(context.Background())
	if err != nil {
		return err
	}
	var errs []error
	good := 0
	for i := range all.Items {
		b := &all.Items[i]
		if b.Problem != "" {
			continue
		}
		if good++; good > s.o.Keep {
			errs = append(errs, os.Remove(filepath.Join(s.o.Directory, b.Name)))
		}
	}
	return errors.Join(errs...)
}

func noDirectory() error {
	return &refusal.Error{
		Code: "no_directory", Status: refusal.Conflict, Detail: "the service has no directory for backups",
		Hint: "name one in backup.directory, or have the backup streamed: portcullis backup create --out FILE",
	}
}

// unusable explains an error of the directory; refusals stay as they are.
func unusable(err error) error {
	if _, ok := errors.AsType[*refusal.Error](err); ok {
		return err
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return &refusal.Error{
			Code: "backup_failed", Status: refusal.Unavailable, Detail: "the backup was not made: " + err.Error(),
			Hint: "see that the service may write to backup.directory, and that its disk has room", Err: err,
		}
	}
	return err
}
