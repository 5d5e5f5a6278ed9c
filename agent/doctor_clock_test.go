package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"portcullis/agent/checklist"
)

// TestDoctorClock: an answer of whole seconds that took its time is no skew.
func TestDoctorClock(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		before, after time.Duration // of this host, from what the service says
		want          checklist.Result
		says          string
	}{
		{0, 0, checklist.OK, "0s from"},
		{900 * time.Millisecond, 950 * time.Millisecond, checklist.OK, "0s from"},
		{-10 * time.Second, 10 * time.Second, checklist.OK, "0s from"},
		{32 * time.Second, 33 * time.Second, checklist.Warning, "31s ahead of"},
		{-41 * time.Second, -40 * time.Second, checklist.Warning, "40s behind"},
		{2 * time.Minute, 2 * time.Minute, checklist.Failed, "1m59s ahead of"},
		{-time.Hour, -time.Hour, checklist.Failed, "1h0m0s behind"},
	} {
		d := &doctor{}
		d.clock(at.Add(tc.before), at.Add(tc.after), at)
		if c := d.checks[0]; c.Result != tc.want || !strings.Contains(c.Detail, tc.says) {
			t.Errorf("%v to %v: got %+v, want %s and %q", tc.before, tc.after, c, tc.want, tc.says)
		}
	}
}

func TestDoctorRoom(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		s    unix.Statfs_t
		want bool
	}{
		{unix.Statfs_t{Bsize: 4096, Bavail: 1 << 20, Files: 10, Ffree: 1}, true},
		{unix.Statfs_t{Bsize: 4096, Bavail: 1 << 20}, true}, // no number of files
		{unix.Statfs_t{Bsize: 4096, Bavail: 1 << 20, Files: 10}, false},
		{unix.Statfs_t{Bsize: 4096, Bavail: 10, Files: 10, Ffree: 1}, false},
	} {
		if err := room(&tc.s); (err == nil) != tc.want {
			t.Errorf("%+v: %v, want room %v", tc.s, err, tc.want)
		}
	}
}

// TestDoctorMADs: a port can be tried if its node may be opened.
func TestDoctorMADs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := DefaultConfig()
	c.Sysfs = filepath.Join(dir, "sys")
	for name, text := range map[string]string{
		"sys/class/infiniband/mlx5_0/node_guid":          "b83f:d203:0000:a100",
		"sys/class/infiniband/mlx5_0/sys_image_guid":     "b83f:d203:0000:a100",
		"sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand",
		"sys/class/infiniband/mlx5_0/ports/1/gids/0":     "fe80:0000:0000:0000:b83f:d203:0000:a101",
		"sys/class/infiniband_mad/umad7/ibdev":           "mlx5_0",
		"sys/class/infiniband_mad/umad7/port":            "1",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d := &doctor{config: &c, infinib: dir}
	d.umad()
	if err := os.WriteFile(filepath.Join(dir, "umad7"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.umad()
	if a, b := d.checks[0], d.checks[1]; a.Result != checklist.Warning || !strings.Contains(a.Detail, "umad7: no such file") || b.Result != checklist.OK || b.Detail != "mlx5_0 port 1 by umad7" {
		t.Errorf("got %+v and %+v", a, b)
	}
}

func TestDoctorHolder(t *testing.T) {
	t.Parallel()
	const locks = "1: POSIX  ADVISORY  WRITE 10 fe:00:77 0 EOF\n2: FLOCK  ADVISORY  WRITE 5441 fe:00:99 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 5442 fe:00:98 0 EOF\n"
	for _, tc := range []struct{ device, ino, want string }{
		{"254:0", "99", "5441"}, {"254:0", "77", ""}, {"254:0", "98", ""}, {"254:1", "99", ""},
	} {
		if got, err := holder(locks, tc.device, tc.ino); got != tc.want || err != nil {
			t.Errorf("%s %s: got %q, %v; want %q", tc.device, tc.ino, got, err, tc.want)
		}
	}
	if _, err := holder(locks, "", "99"); err == nil {
		t.Error("a mount without a device was taken")
	}
}
