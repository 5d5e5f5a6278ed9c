package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"portcullis/api/problem"
	v1 "portcullis/api/v1"
)

// BackupKeeper makes and keeps backups. Package api/backup implements it. Errors and actors are as those of Backend.
type BackupKeeper interface {
	List(ctx context.Context) (*v1.List[v1.Backup], error)
	// Create writes a backup into the service's directory.
	Create(ctx context.Context, actor string) (*v1.Backup, error)
	// Stream writes a backup to what w returns, which is called once, when nothing but reading and writing can fail
	// any longer.
	Stream(ctx context.Context, actor string, w func(v1.Backup) io.Writer) error
	Verify(ctx context.Context, name string) (*v1.Backup, error)
	Open(name string) (io.ReadCloser, error)
}

type backupInput struct {
	Name string `path:"name" maxLength:"128" doc:"file in the service's directory of backups"`
}

const backupType = "application/octet-stream"

func (s *Server) backupRoutes(a huma.API) {
	register(s, a, operation{
		id: "list-backups", method: http.MethodGet, path: "/v1/backups", tag: "backup", access: accessAudit,
		summary: "List backups in the service's directory, the newest first",
	}, func(ctx context.Context, _ *struct{}) (*bodyOutput[v1.List[v1.Backup]], error) {
		if s.backups == nil {
			return nil, noBackups()
		}
		body, err := s.backups.List(ctx)
		return &bodyOutput[v1.List[v1.Backup]]{body}, err
	})
	register(s, a, operation{
		id: "verify-backup", method: http.MethodPost, path: "/v1/backups/{name}/verify", tag: "backup", access: accessOperate,
		summary: "Verify that a backup is the file that was written", long: true,
	}, func(ctx context.Context, in *backupInput) (*bodyOutput[v1.Backup], error) {
		if s.backups == nil {
			return nil, noBackups()
		}
		body, err := s.backups.Verify(ctx, in.Name)
		return &bodyOutput[v1.Backup]{body}, err
	})
	register(s, a, operation{
		id: "create-backup", method: http.MethodPost, path: "/v1/backups", tag: "backup", access: accessOperate, status: http.StatusCreated,
		summary: "Write a backup into the service's directory", long: true,
	}, func(ctx context.Context, _ *struct{}) (*bodyOutput[v1.Backup], error) {
		if s.backups == nil {
			return nil, noBackups()
		}
		body, err := s.backups.Create(ctx, actor(ctx))
		return &bodyOutput[v1.Backup]{body}, err
	})
	s.backupStreams(a)
}

// backupStreams registers the routes whose answers are files of any length.
func (s *Server) backupStreams(a huma.API) {
	file := map[string]*huma.Response{"200": {
		Description: "The file", Content: map[string]*huma.MediaType{backupType: {Schema: &huma.Schema{Type: "string", Format: "binary"}}},
	}}
	stream := s.describe(a, operation{
		id: "stream-backup", method: http.MethodPost, path: "/v1/backups/stream", tag: "backup", access: accessOperate,
		summary: "Make a backup and send it; the service keeps no file",
	})
	stream.Responses["200"] = file["200"]
	huma.Register(a, stream, func(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
		if s.backups == nil {
			return nil, noBackups()
		}
		if err := extend(ctx, longTimeout); err != nil {
			return nil, err
		}
		return &huma.StreamResponse{Body: func(c huma.Context) { s.streamBackup(ctx, c) }}, nil
	})
	get := s.describe(a, operation{
		id: "get-backup", method: http.MethodGet, path: "/v1/backups/{name}", tag: "backup", access: accessOperate,
		summary: "Send a backup of the service's directory",
	})
	get.Responses["200"] = file["200"]
	huma.Register(a, get, func(ctx context.Context, in *backupInput) (*huma.StreamResponse, error) {
		if s.backups == nil {
			return nil, noBackups()
		}
		f, err := s.backups.Open(in.Name)
		if err != nil {
			p, fault := problem.Of(err)
			noteFault(ctx, fault)
			return nil, p
		}
		if err := extend(ctx, longTimeout); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			defer f.Close()
			_, w := humachi.Unwrap(c)
			if _, err := io.Copy(s.file(ctx, w), f); err != nil {
				s.cutOff(ctx, fmt.Errorf("send backup %s: %w", in.Name, err))
			}
		}}, nil
	})
}

// streamBackup answers with a backup, or with a problem as long as nothing was sent.
func (s *Server) streamBackup(ctx context.Context, c huma.Context) {
	_, w := humachi.Unwrap(c)
	began := false
	err := s.backups.Stream(ctx, actor(ctx), func(v1.Backup) io.Writer {
		began = true
		return s.file(ctx, w)
	})
	switch {
	case err == nil:
	case began:
		s.cutOff(ctx, fmt.Errorf("send a backup: %w", err))
	default:
		p, fault := problem.Of(err)
		noteFault(ctx, fault)
		problem.Write(w, p)
	}
}

// file begins an answer that is a file, and returns what takes its bytes.
func (s *Server) file(ctx context.Context, w http.ResponseWriter) io.Writer {
	w.Header().Set("Content-Type", backupType)
	return &paced{ctx: ctx, w: w, rc: http.NewResponseController(w)}
}

// cutOff ends the connection, so that a part of a file is not taken for the whole.
func (s *Server) cutOff(ctx context.Context, err error) {
	if ctx.Err() == nil {
		noteFault(ctx, err)
	}
	panic(http.ErrAbortHandler)
}

func noBackups() *problem.Problem {
	return problem.New(http.StatusServiceUnavailable, v1.CodeUnavailable, "this process makes no backups", "ask the service")
}
