package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	v1 "portcullis/api/v1"
)

// Backups asks about backups of the service's store.
type Backups struct{ c *Client }

// Backups returns the operations about backups of the service's store.
func (c *Client) Backups() Backups { return Backups{c} }

// List lists backups in the service's directory, the newest first.
func (g Backups) List(ctx context.Context) ([]v1.Backup, error) {
	list, err := ask[v1.List[v1.Backup]](ctx, g.c, listBackups, nil)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// Create has the service write a backup into its directory. It may take as long as ctx allows.
func (g Backups) Create(ctx context.Context) (*v1.Backup, error) {
	return g.long(ctx, createBackup)
}

// Verify has the service verify that a backup is the file that it wrote. It may take as long as ctx allows.
func (g Backups) Verify(ctx context.Context, name string) (*v1.Backup, error) {
	return g.long(ctx, verifyBackup, name)
}

func (g Backups) long(ctx context.Context, o operation, operands ...string) (*v1.Backup, error) {
	resp, err := open(ctx, g.c, o, nil, operands...)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out v1.Backup
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&out); err != nil {
		return nil, fmt.Errorf("read the answer of POST %s: %w", o.path(operands), err)
	}
	return &out, nil
}

// Stream has a backup made and writes it to w. It may take as long as ctx allows. After an error w may hold a
// part of it.
func (g Backups) Stream(ctx context.Context, w io.Writer) error {
	return save(ctx, g.c, w, "backup", streamBackup, nil)
}

// Read writes a backup of the service's directory to w, as Stream does.
func (g Backups) Read(ctx context.Context, w io.Writer, name string) error {
	return save(ctx, g.c, w, "backup", readBackup, nil, name)
}
