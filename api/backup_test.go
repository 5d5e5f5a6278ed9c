package api_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/backup"
	"portcullis/api/backup/archive"
	"portcullis/api/client"
	"portcullis/api/credential"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
)

// logged serves a store with an audit log of n entries, and backups of it, and returns a client and the identity that
// opens them.
func logged(t *testing.T, n int) (*client.Client, *age.X25519Identity) {
	t.Helper()
	s := store.New(memory.New(time.Now), "")
	_, err := s.Update(t.Context(), func(tx *store.Tx) error {
		for range n {
			if err := audit.Append(t.Context(), tx, audit.Entry{Time: time.Unix(1, 5), Actor: "ann", Action: "host.assign", Object: "host/h1", Detail: "<&>"}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	id, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	backups := backup.New(backup.Options{
		Store: s, Recipients: []*age.X25519Recipient{id.Recipient()}, Directory: t.TempDir(), State: 1, Version: "test", Log: slog.New(slog.DiscardHandler),
	})
	srv := apitest.Start(t, apitest.NewSite(t), func(o *api.Options) {
		o.Audit, o.Backups = audit.Book{Store: s}, backups
	})
	ca, err := os.ReadFile(srv.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(client.Options{URL: srv.URL, CA: ca, Token: srv.Operator})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, id
}

// Entries of the audit log that a client reads have the hashes that they had in the store.
func TestAuditOverHTTP(t *testing.T) {
	const n = 7
	c, _ := logged(t, n)
	var ch chain.Chain
	for page, err := range c.Audit().Entries(t.Context(), v1.AuditQuery{Limit: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Items {
			if err := ch.Add((*chain.Entry)(&page.Items[i])); err != nil {
				t.Fatal(err)
			}
		}
	}
	head, err := c.Audit().Head(t.Context())
	if err != nil || ch.Head() != chain.Head(*head) || head.Seq != n {
		t.Errorf("read to %+v, head %+v, %v", ch.Head(), head, err)
	}
	for page, err := range c.Audit().Entries(t.Context(), v1.AuditQuery{After: "none"}) {
		p, _ := errors.AsType[*v1.Problem](err)
		if page != nil || p == nil || p.Status != http.StatusUnprocessableEntity || p.Code != "cursor_invalid" {
			t.Errorf("a wrong cursor: %v", err)
		}
	}
}

func TestBackupOverHTTP(t *testing.T) {
	c, id := logged(t, 3)
	made, err := c.Backups().Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Backups().List(t.Context())
	if err != nil || len(list) != 1 || list[0].Name != made.Name || list[0].Revision != made.Revision {
		t.Errorf("%+v, %v", list, err)
	}
	if v, err := c.Backups().Verify(t.Context(), made.Name); err != nil || v.SHA256 != made.SHA256 {
		t.Errorf("%+v, %v", v, err)
	}
	for what, get := range map[string]func(context.Context, *bytes.Buffer) error{
		"file":   func(ctx context.Context, b *bytes.Buffer) error { return c.Backups().Read(ctx, b, made.Name) },
		"stream": func(ctx context.Context, b *bytes.Buffer) error { return c.Backups().Stream(ctx, b) },
	} {
		var b bytes.Buffer
		if err := get(t.Context(), &b); err != nil {
			t.Fatal(what, err)
		}
		h, n, err := archive.Read(bytes.NewReader(b.Bytes()), int64(b.Len()), []age.Identity{id}, nil, func(archive.Item) error { return nil })
		if err != nil || n < 4 || !slices.Equal(h.Recipients, []string{id.Recipient().String()}) {
			t.Errorf("%s: %d records of %+v, %v", what, n, h, err)
		}
	}
	if _, err := c.Backups().Verify(t.Context(), filepath.Join("..", made.Name)); err == nil || !strings.Contains(err.Error(), "no backup") {
		t.Errorf("a name that leads out of the directory: %v", err)
	}
}

// A token with ranges of P_Keys reads nothing about all tenants.
func TestScopedTokenReadsNoAuditLog(t *testing.T) {
	token, digest := credential.New()
	tokens, err := credential.Parse("tokens.yaml", []byte("tokens:\n- {name: sched, role: operator, sha256: "+digest+`, p_keys: ["0x0001-0x0002"]}`+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, unlimited, func(o *api.Options) { o.Tokens = tokens })
	for _, path := range []string{"/v1/audit", "/v1/audit/head", "/v1/backups"} {
		wantProblem(t, f.do("GET", path, token, ""), http.StatusForbidden, v1.CodeForbidden)
	}
}
