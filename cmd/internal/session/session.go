// Package session keeps what a person who signed in has: one file for each context of the command line, with the tokens in it. Files have
// mode 0600 in a folder of mode 0700, and are replaced whole. A lock has one process renew a session at a time.
package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"portcullis/cmd/internal/input"
	"portcullis/cmd/internal/signin"
	"portcullis/fabricsm/ib"
)

const (
	version   = 1
	maxFile   = 512 << 10 // bytes
	lockPause = 20 * time.Millisecond
	// lockWithin is how long a lock is waited for at most: longer than a renewal may take, which is two answers of a provider.
	lockWithin = 45 * time.Second
)

// Session is what a person who signed in has.
type Session struct {
	Service  string // URL of the service that the tokens are for
	Provider string // its name in the configuration of the service
	Settings signin.Settings
	Tokens   signin.Tokens
	SignedIn time.Time
}

// wire is a session in its file: the one place where tokens are text.
type wire struct {
	Version  int       `json:"version"`
	Service  string    `json:"service"`
	Provider string    `json:"provider"`
	Issuer   string    `json:"issuer"`
	ClientID string    `json:"client_id"`
	Scopes   []string  `json:"scopes"`
	UseID    bool      `json:"use_id_token"`
	Audience string    `json:"audience,omitempty"`
	CA       string    `json:"ca,omitempty"`
	Subject  string    `json:"subject"`
	SignedIn time.Time `json:"signed_in"`
	Bearer   string    `json:"token"`
	Begins   time.Time `json:"begins,omitzero"`
	Expires  time.Time `json:"expires"`
	Refresh  string    `json:"refresh_token,omitempty"`
}

func encode(s *Session) ([]byte, error) {
	return json.Marshal(wire{
		version, s.Service, s.Provider, s.Settings.Issuer, s.Settings.ClientID, s.Settings.Scopes, s.Settings.UseID, s.Settings.Audience, string(s.Settings.CA),
		s.Tokens.Subject, s.SignedIn, s.Tokens.Bearer.Reveal(), s.Tokens.Begins, s.Tokens.Expires, s.Tokens.Refresh.Reveal(),
	})
}

// decode reads a session. Errors quote nothing of it.
func decode(data []byte) (*Session, error) {
	var w wire
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if d.Decode(&w) != nil {
		return nil, errors.New("it is no session of this version of portcullis")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("it has more than a session")
	}
	switch {
	case w.Version != version:
		return nil, fmt.Errorf("it has version %d, and this program knows %d", w.Version, version)
	case w.Service == "" || w.Bearer == "" || w.Expires.IsZero():
		return nil, errors.New("it lacks service, token or expires")
	}
	s := &Session{
		Service: w.Service, Provider: w.Provider, SignedIn: w.SignedIn,
		Settings: signin.Settings{Issuer: w.Issuer, ClientID: w.ClientID, Scopes: w.Scopes, UseID: w.UseID, Audience: w.Audience},
		Tokens: signin.Tokens{
			Bearer: ib.NewSecretText(w.Bearer), Refresh: ib.NewSecretText(w.Refresh), Begins: w.Begins, Expires: w.Expires, Subject: w.Subject,
		},
	}
	if w.CA != "" {
		s.Settings.CA = []byte(w.CA)
	}
	return s, s.Settings.Check()
}

// Place is where the session of a context is.
type Place struct {
	file string
	name string // of the context, or the URL of the service
}

// Of returns the place of a context; without one, of the service that a command line names. Dir is the folder of configurations.
func Of(dir, name, service string) Place {
	if name != "" {
		return Place{filepath.Join(dir, "sessions", name+".json"), "context " + name}
	}
	digest := sha256.Sum256([]byte(service))
	return Place{filepath.Join(dir, "sessions", "_"+hex.EncodeToString(digest[:8])+".json"), "service " + service} // no context has such a name
}

// String returns what the session is of, for people.
func (p Place) String() string { return p.name }

// Read returns the session, nil where there is none. A file that others may read or write is refused.
func (p Place) Read() (*Session, error) { return p.read(0o077) }

// read refuses files with one of the forbidden bits of mode.
func (p Place) read(forbidden fs.FileMode) (*Session, error) {
	for _, place := range []struct {
		name, cure string
		dir        bool
	}{{filepath.Dir(p.file), "chmod 700 ", true}, {p.file, "chmod 600 ", false}} {
		info, err := os.Lstat(place.name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("session of %s: %w", p, err)
		case info.IsDir() != place.dir || !place.dir && !info.Mode().IsRegular():
			return nil, fmt.Errorf("session of %s: %s is neither a folder nor a file of portcullis: remove it", p, place.name)
		case info.Mode().Perm()&forbidden != 0:
			return nil, fmt.Errorf("session of %s: %s has mode %04o, and others may use it; run: %s%s", p, place.name, info.Mode().Perm(), place.cure, place.name)
		}
	}
	data, err := input.ReadFile(p.file, maxFile)
	if err != nil {
		return nil, fmt.Errorf("session of %s: %w", p, err)
	}
	s, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("session of %s: %s: %w; portcullis logout removes it", p, p.file, err)
	}
	return s, nil
}

// Change replaces the session by what change makes of it, while no other process does; nil is none, before and after. An error of
// change is returned, and what it returns beside counts still.
func (p Place) Change(ctx context.Context, change func(*Session) (*Session, error)) error {
	unlock, err := p.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	was, err := p.Read()
	if err != nil {
		return err
	}
	next, failed := change(was)
	if next == was {
		return failed
	}
	return errors.Join(failed, p.write(next))
}

// write replaces the file, or removes it for nil.
func (p Place) write(s *Session) error {
	if s == nil {
		if err := os.Remove(p.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("session of %s: %w", p, err)
		}
		return nil
	}
	data, err := encode(s)
	if err == nil {
		err = renameio.WriteFile(p.file, append(data, '\n'), 0o600, renameio.WithTempDir(filepath.Dir(p.file))) // tokens are in no other folder, ever
	}
	if err != nil {
		return fmt.Errorf("session of %s: %w", p, err)
	}
	return nil
}

// End removes the session, whatever its file holds, after revoke was called with it, unless there is none. One that others may use is
// revoked too, since they may have it. The errors of both are returned.
func (p Place) End(ctx context.Context, revoke func(*Session) error) error {
	unlock, err := p.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := p.read(0)
	if s != nil {
		err = revoke(s)
	} else if err != nil {
		err = fmt.Errorf("removed, and not revoked at the provider: %w", err)
	}
	return errors.Join(err, p.write(nil))
}

// lock waits until no other process changes the session. The file of the lock stays: removing it would let two in.
func (p Place) lock(ctx context.Context) (unlock func(), _ error) {
	dir := filepath.Dir(p.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("session of %s: %w", p, err)
	}
	f, err := os.OpenFile(p.file+".lock", os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("session of %s: %w", p, err)
	}
	within, cancel := context.WithTimeout(ctx, lockWithin)
	defer cancel()
	pause := time.NewTicker(lockPause)
	defer pause.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock the session of %s: %w", p, err)
		}
		select {
		case <-pause.C:
		case <-within.Done():
			f.Close()
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, ctx.Err()
			}
			return nil, fmt.Errorf("another portcullis changes the session of %s, and does not end: end it; fuser %s.lock names it", p, p.file)
		}
	}
}
