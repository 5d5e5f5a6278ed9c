package api_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"portcullis/attest/tpm/tpmtest"
	"portcullis/fabricsm/ib"
)

// plantHost writes the kernel's trees of a host with one adapter, whose port has the
// GUID after the node's, and the event log of its TPM, into a directory's sys and proc.
func plantHost(t *testing.T, dir string, node ib.GUID, dev *tpmtest.TPM) {
	t.Helper()
	spelt := func(g ib.GUID) string {
		s := strings.TrimPrefix(g.String(), "0x")
		return s[:4] + ":" + s[4:8] + ":" + s[8:12] + ":" + s[12:]
	}
	for name, data := range map[string]string{
		"proc/sys/kernel/random/boot_id":             "3a6e2f4b-7c1d-4f6e-9a3b-0d5c8e7f1a2b",
		"sys/class/infiniband/mlx5_0/node_guid":      spelt(node),
		"sys/class/infiniband/mlx5_0/sys_image_guid": spelt(node),
		"sys/class/infiniband/mlx5_0/board_id":       "MT_0000000838",
		"sys/class/infiniband/mlx5_0/fw_ver":         "28.43.1014",
		"sys/class/infiniband/mlx5_0/hca_type":       "MT4129",

		"sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand",
		"sys/class/infiniband/mlx5_0/ports/1/gids/0":     "fe80:0000:0000:0000:" + spelt(node+1),
	} {
		file := filepath.Join(dir, name)
		fatal(t, os.MkdirAll(filepath.Dir(file), 0o755))
		fatal(t, os.WriteFile(file, []byte(data+"\n"), 0o644))
	}
	fatal(t, dev.PlantEventLog(filepath.Join(dir, "sys")))
}
