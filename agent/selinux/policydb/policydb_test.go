package policydb

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/packaging/testenv"
)

const labels = `
(type pkey_t) (roletype object_r pkey_t)
(type port_t) (roletype object_r port_t)
(allow domain pkey_t (infiniband_pkey (access)))
(allow opensm_t port_t (infiniband_endport (manage_subnet)))
(booleanif switched (true (allow container_t port_t (infiniband_endport (manage_subnet)))))
(mlsconstrain (infiniband_pkey (access)) (or (or (dom h1 h2) (eq t1 kernel_t)) (neq t2 pkey_t)))
(constrain (infiniband_endport (manage_subnet)) (eq u1 u2))
(ibpkeycon fec0:0:0:1:: (0x10 0x1f) (system_u object_r pkey_t ((s0 (c1 c27)) (s0 (c1 c27)))))
(ibpkeycon fe80:: 0x8001 (system_u object_r pkey_t ((s0) (s0))))
(ibendportcon mlx5_0 2 (system_u object_r port_t ((s0) (s0 (c0)))))
`

// compile makes a policy of the base, every other kind of statement, and more.
func compile(t testing.TB, version int, more string) []byte {
	t.Helper()
	secilc := testenv.Program(t, "secilc")
	dir := t.TempDir()
	text, policy := filepath.Join(dir, "more.cil"), filepath.Join(dir, "policy")
	if err := os.WriteFile(text, []byte(more), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(secilc, "-M", "true", "-c", strconv.Itoa(version), "-o", policy, "-f", os.DevNull,
		"../testdata/base.cil", "../testdata/full.cil", text).CombinedOutput()
	if err != nil {
		t.Fatalf("secilc: %v: %s", err, out)
	}
	data, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestRead checks that the compiler's output is read to its last byte, in every version that can have labels.
func TestRead(t *testing.T) {
	t.Parallel()
	for version := versionLabels; version <= versionFileTransitions; version++ {
		p, err := Read(compile(t, version, labels))
		if err != nil {
			t.Fatal(err)
		}
		wantKeys := []PKeyLabel{
			{netip.MustParsePrefix("fe80::/64"), 0x8001, 0x8001, Label{Type: "pkey_t"}},
			{netip.MustParsePrefix("fec0:0:0:1::/64"), 0x10, 0x1f, Label{"pkey_t", []string{"c1", "c27"}}},
		}
		slices.SortFunc(p.PKeys, func(a, b PKeyLabel) int { return a.Prefix.Addr().Compare(b.Prefix.Addr()) })
		if d := cmp.Diff(wantKeys, p.PKeys, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
			t.Errorf("version %d: P_Keys (-want +got):\n%s", version, d)
		}
		if d := cmp.Diff([]EndPortLabel{{"mlx5_0", 2, Label{Type: "port_t"}}}, p.EndPorts); d != "" {
			t.Errorf("version %d: end ports (-want +got):\n%s", version, d)
		}
		for _, tt := range []struct {
			class, permission, target string
			want                      []string
		}{
			{ClassPKey, Access, "pkey_t", []string{"aliased_t", "container_t", "kernel_t", "opensm_t", "other_t", "udev_t"}},
			{ClassEndPort, ManageSubnet, "port_t", []string{"container_t", "opensm_t"}},
			{ClassEndPort, ManageSubnet, "unlabeled_t", []string{"kernel_t"}},
			{ClassEndPort, ManageSubnet, "no_such_t", nil},
			{"no_such_class", ManageSubnet, "port_t", nil},
		} {
			if d := cmp.Diff(tt.want, p.Allowed(tt.class, tt.permission, tt.target)); d != "" {
				t.Errorf("version %d: who has %s to %s (-want +got):\n%s", version, tt.permission, tt.target, d)
			}
		}
		if !p.Permissive("aliased_t") || p.Permissive("other_t") || p.Permissive("no_such_t") {
			t.Errorf("version %d: the permissive domain is not aliased_t", version)
		}
		if !p.HasType("old_t") || p.HasType("no_such_t") {
			t.Errorf("version %d: old_t, an alias, is a type, and no_such_t is none", version)
		}
	}
}

func TestConstrained(t *testing.T) {
	t.Parallel()
	p, err := Read(compile(t, 33, labels))
	if err != nil {
		t.Fatal(err)
	}
	both, one := []string{"c1", "c27"}, []string{"c1"}
	for _, tt := range []struct {
		domain, object string
		process, label []string
		want           bool
	}{
		{"other_t", "pkey_t", both, both, false},
		{"other_t", "pkey_t", one, both, true},
		{"other_t", "pkey_t", nil, nil, false},
		{"kernel_t", "pkey_t", nil, both, false},
		{"other_t", "file_t", nil, both, false},
	} {
		if got, err := p.Constrained(ClassPKey, Access, tt.domain, tt.object, tt.process, tt.label); err != nil || got != tt.want {
			t.Errorf("%s with %v to %s with %v: constrained is %v, %v, want %v", tt.domain, tt.process, tt.object, tt.label, got, err, tt.want)
		}
	}
	if _, err := p.Constrained(ClassEndPort, ManageSubnet, "opensm_t", "port_t", nil, nil); err == nil {
		t.Error("a constraint on users is judged, which nothing is known of here")
	}
	if _, err := p.Constrained(ClassPKey, Access, "other_t", "pkey_t", []string{"c999"}, nil); err == nil || !strings.Contains(err.Error(), "c999") {
		t.Errorf("a category that the policy does not have: %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	whole := compile(t, 33, labels)
	change := func(at int, value uint32) []byte {
		b := bytes.Clone(whole)
		binary.LittleEndian.PutUint32(b[at:], value)
		return b
	}
	const version, tables, first = 16, 24, 32 // offsets
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"nothing":                     {nil, "ends in the middle"},
		"a module":                    {change(0, 0xf97cff8d), "not a Linux policy"},
		"of a version without labels": {change(version, 30), "versions 31 to 34 are read"},
		"of a later version":          {change(version, 35), "versions 31 to 34 are read"},
		"with other tables":           {change(tables, 7), "7 tables"},
		"with other bitmaps":          {change(first, 32), "units of 32 bits"},
		"with more behind it":         {append(bytes.Clone(whole), 0), "1 bytes follow"},
	} {
		if _, err := Read(tt.data); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, tt.want)
		}
	}
	for n := range whole {
		if _, err := Read(whole[:n]); err == nil {
			t.Fatalf("its first %d bytes of %d are taken for a whole policy", n, len(whole))
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(compile(f, 33, labels))
	f.Add(compile(f, 31, ""))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read(data)
		if err != nil {
			return
		}
		p.Allowed(ClassPKey, Access, "pkey_t")
		if _, err := p.Constrained(ClassPKey, Access, "other_t", "pkey_t", nil, nil); err != nil {
			return
		}
	})
}
