package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"portcullis/cmd/internal/signin"
	"portcullis/fabricsm/ib"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func secret(s string) ib.SecretText { return ib.NewSecretText(s) }

func example() *Session {
	return &Session{
		Service: "https://fabric.test", Provider: "corp", SignedIn: noon,
		Settings: signin.Settings{Issuer: "https://idp.test", ClientID: "cli", Scopes: []string{"openid"}, UseID: true, Audience: "fabric"},
		Tokens:   signin.Tokens{Bearer: secret("first"), Refresh: secret("r1"), Begins: noon, Expires: noon.Add(time.Hour), Subject: "olga"},
	}
}

// put keeps a session.
func put(t *testing.T, p Place, s *Session) {
	t.Helper()
	if err := p.Change(t.Context(), func(*Session) (*Session, error) { return s, nil }); err != nil {
		t.Fatal(err)
	}
}

func same(a, b *Session) bool {
	x, err := encode(a)
	y, err2 := encode(b)
	return err == nil && err2 == nil && string(x) == string(y)
}

// TestPlaces: a session is kept in a file of its own, for a context or for a service, that others may not read, and is read as it was.
func TestPlaces(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "portcullis")
	prod, lab, service, other := Of(dir, "prod", "https://a"), Of(dir, "lab", "https://a"), Of(dir, "", "https://a"), Of(dir, "", "https://b")
	for _, p := range []Place{prod, lab, service, other} {
		if s, err := p.Read(); s != nil || err != nil {
			t.Errorf("%s: %v, %v; want none", p, s, err)
		}
	}
	full := example()
	full.Settings.CA = []byte(testCA)
	bare := example()
	bare.Tokens.Refresh, bare.Tokens.Begins = ib.SecretText{}, time.Time{}
	put(t, prod, full)
	put(t, service, bare)
	for p, want := range map[Place]*Session{prod: full, service: bare} {
		if got, err := p.Read(); err != nil || !same(got, want) || got.Tokens.Refresh.IsZero() != want.Tokens.Refresh.IsZero() {
			t.Errorf("%s: %+v, %v", p, got, err)
		}
		if info, err := os.Stat(p.file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", p, info, err)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "sessions")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
	for _, p := range []Place{lab, other} {
		if s, err := p.Read(); s != nil || err != nil {
			t.Errorf("%s: %v, %v; want none", p, s, err)
		}
	}
	if err := prod.End(t.Context(), func(*Session) error { return nil }); err != nil {
		t.Error(err)
	}
	if s, err := prod.Read(); s != nil || err != nil {
		t.Errorf("removed: %v, %v", s, err)
	}
}

// TestFilesThatAreRefused: a file that others may use, or that is no session, is an error that says what to do and quotes no secret.
func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	good, err := encode(example())
	if err != nil {
		t.Fatal(err)
	}
	edit := func(old, with string) func(*testing.T, Place) {
		return func(t *testing.T, p Place) { write(t, p.file, strings.Replace(string(good), old, with, 1)) }
	}
	for name, tt := range map[string]struct {
		spoil func(*testing.T, Place)
		want  string
	}{
		"others read":       {func(t *testing.T, p Place) { chmod(t, p.file, 0o604) }, "has mode 0604, and others may use it; run: chmod 600 "},
		"the group writes":  {func(t *testing.T, p Place) { chmod(t, p.file, 0o620) }, "has mode 0620, and others may use it; run: chmod 600 "},
		"an open folder":    {func(t *testing.T, p Place) { chmod(t, filepath.Dir(p.file), 0o755) }, "has mode 0755, and others may use it; run: chmod 700 "},
		"a link":            {link, "is neither a folder nor a file of portcullis: remove it"},
		"empty":             {edit(string(good), ""), "is no session of this version"},
		"cut off":           {edit(`"}`, ""), "is no session of this version"},
		"two":               {edit(string(good), string(good)+string(good)), "has more than a session"},
		"an unknown member": {edit("{", `{"extra":"first",`), "is no session of this version"},
		"another version":   {edit(`"version":1`, `"version":2`), "has version 2, and this program knows 1"},
		"no token":          {edit(`"token":"first"`, `"token":""`), "lacks service, token or expires"},
		"no service":        {edit(`"service":"https://fabric.test"`, `"service":""`), "lacks service, token or expires"},
		"no end":            {edit(`"expires":"2026-11-21T13:00:00Z",`, ""), "lacks service, token or expires"},
		"another issuer":    {edit("https://idp.test", "http://idp.test"), "the issuer"},
		"huge":              {edit("r1", strings.Repeat("r", maxFile)), "more than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := Of(t.TempDir(), "prod", "")
			put(t, p, example())
			tt.spoil(t, p)
			s, err := p.Read()
			if s != nil || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "session of context prod: ") || strings.Contains(err.Error(), `first`) {
				t.Errorf("%v, %v; want %q", s, err, tt.want)
			}
			if err := p.Change(t.Context(), func(*Session) (*Session, error) { t.Error("changed"); return nil, nil }); err == nil {
				t.Error("no error of a change")
			}
			if _, err := Open(p, "https://fabric.test"); err == nil {
				t.Error("opened")
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func chmod(t *testing.T, file string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(file, mode); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, p Place) {
	t.Helper()
	if err := errors.Join(os.Rename(p.file, p.file+".elsewhere"), os.Symlink(p.file+".elsewhere", p.file)); err != nil {
		t.Fatal(err)
	}
}

// TestOneChangeAtATime: changes of two open files, as two processes have them, come one after the other; a wait in vain ends with an error.
func TestOneChangeAtATime(t *testing.T) {
	t.Parallel()
	p := Of(t.TempDir(), "prod", "")
	put(t, p, example())
	inside, leave := make(chan struct{}), make(chan struct{})
	done := make(chan error, 1)
	go func() {
		done <- p.Change(t.Context(), func(s *Session) (*Session, error) {
			close(inside)
			<-leave
			next := *s
			next.Tokens.Bearer = secret("second")
			return &next, nil
		})
	}()
	select {
	case <-inside:
	case err := <-done:
		t.Fatalf("the first change: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockPause)
	defer cancel()
	if err := p.Change(ctx, func(*Session) (*Session, error) { t.Error("two at once"); return nil, nil }); err == nil || !strings.Contains(err.Error(), "another portcullis changes the session") {
		t.Errorf("a second change: %v", err)
	}
	if err := p.End(ctx, func(*Session) error { t.Error("ended by two"); return nil }); err == nil || !strings.Contains(err.Error(), "another portcullis changes the session") {
		t.Errorf("a removal: %v", err)
	}
	close(leave)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if err := p.Change(t.Context(), func(s *Session) (*Session, error) {
		if s.Tokens.Bearer.Reveal() != "second" {
			t.Errorf("the second change sees %q", s.Tokens.Bearer.Reveal())
		}
		return nil, errors.New("but")
	}); err == nil || err.Error() != "but" {
		t.Errorf("%v", err)
	}
	if s, err := p.Read(); s != nil || err != nil {
		t.Errorf("after a removal with an error: %v, %v", s, err)
	}
}

// TestSessionsCannotBePrinted: a session shows none of its tokens, in text, JSON or errors.
func TestSessionsCannotBePrinted(t *testing.T) {
	t.Parallel()
	s := example()
	s.Tokens.Bearer, s.Tokens.Refresh = secret("eyJbearer"), secret("refreshing")
	data, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", s, *s, s, data); strings.Contains(text, "eyJbearer") || strings.Contains(text, "refreshing") {
		t.Errorf("printed: %s", text)
	}
}

func FuzzDecode(f *testing.F) {
	good, err := encode(example())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decode(data)
		if (s == nil || s.Service == "" || s.Tokens.Bearer.IsZero() || s.Settings.Check() != nil) && err == nil {
			t.Errorf("accepted: %+v", s)
		}
	})
}

// TestEnd: a session is revoked, also where others may use its file, and its file is removed whatever it holds and whatever the revocation
// returns.
func TestEnd(t *testing.T) {
	t.Parallel()
	away := errors.New("the provider is away")
	for name, tt := range map[string]struct {
		spoil   func(file string) error
		revoked bool
		err     string
	}{
		"a session":             {func(string) error { return nil }, true, "the provider is away"},
		"one that others read":  {func(file string) error { return os.Chmod(file, 0o644) }, true, "the provider is away"},
		"one in an open folder": {func(file string) error { return os.Chmod(filepath.Dir(file), 0o755) }, true, "the provider is away"},
		"no JSON":               {func(file string) error { return os.WriteFile(file, []byte("x"), 0o600) }, false, "removed, and not revoked at the provider"},
		"none":                  {os.Remove, false, ""},
	} {
		p := Of(t.TempDir(), "prod", "")
		put(t, p, example())
		if err := tt.spoil(p.file); err != nil {
			t.Fatal(err)
		}
		revoked := false
		err := p.End(t.Context(), func(s *Session) error { revoked = same(s, example()); return away })
		if revoked != tt.revoked || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: revoked %v, %v", name, revoked, err)
		}
		if _, err := os.Lstat(p.file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the file is there: %v", name, err)
		}
	}
}
