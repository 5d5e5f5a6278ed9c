package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	v1 "portcullis/api/v1"
)

// Backups lists backups in the service's directory, the newest first.
func (c *Client) Backups(ctx context.Context) ([]v1.Backup, error) {
	var out v1.List[v1.Backup]
	err := c.get(ctx, "/v1/backups", &out)
	return out.Items, err
}

// CreateBackup has the service write a backup into its directory. It may take as long as ctx allows.
func (c *Client) CreateBackup(ctx context.Context) (*v1.Backup, error) {
	return c.long(ctx, "/v1/backups")
}

// VerifyBackup has the service verify that a backup is the file that it wrote. It may take as long as ctx allows.
func (c *Client) VerifyBackup(ctx context.Context, name string) (*v1.Backup, error) {
	return c.long(ctx, "/v1/backups/"+url.PathEscape(name)+"/verify")
}

func (c *Client) long(ctx context.Context, path string) (*v1.Backup, error) {
	resp, err := c.send(ctx, c.http, http.MethodPost, path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out v1.Backup
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&out); err != nil {
		return nil, fmt.Errorf("read the answer of POST %s: %w", path, err)
	}
	return &out, nil
}

// StreamBackup has a backup made and writes it to w. It may take as long as ctx allows. After an error w may hold a
// part of it.
func (c *Client) StreamBackup(ctx context.Context, w io.Writer) error {
	return c.copy(ctx, w, http.MethodPost, "/v1/backups/stream")
}

// Backup writes a backup of the service's directory to w, as StreamBackup does.
func (c *Client) Backup(ctx context.Context, w io.Writer, name string) error {
	return c.copy(ctx, w, http.MethodGet, "/v1/backups/"+url.PathEscape(name))
}

func (c *Client) copy(ctx context.Context, w io.Writer, method, path string) error {
	resp, err := c.send(ctx, c.http, method, path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("read the backup: %w", err)
	}
	return nil
}
