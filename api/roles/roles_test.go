package roles_test

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"portcullis/api/roles"
)

var update = flag.Bool("update", false, "write the table into the document")

// Every operation of the document is in one group, and the table has no other.
func TestEveryOperationHasOneGroup(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../docs/reference/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			ID       string                `yaml:"operationId"`
			Security []map[string][]string `yaml:"security"`
		} `yaml:"paths"`
	}
	if err := yaml.Load(data, &doc); err != nil {
		t.Fatal(err)
	}
	groups, asks := map[string][]string{}, map[string]bool{roles.Metrics: true, roles.Conditions: true, roles.UFM: true}
	names := map[string]bool{}
	for _, g := range roles.Table() {
		if names[g.Name] || g.Name == "" || g.Does == "" || len(g.Operations) == 0 {
			t.Errorf("group %q is named twice or says too little", g.Name)
		}
		names[g.Name] = true
		for _, o := range g.Operations {
			groups[o] = append(groups[o], g.Name)
		}
	}
	for path, methods := range doc.Paths {
		for method, o := range methods {
			asks[o.ID] = len(o.Security) == 2 && o.Security[0]["operator"] != nil && o.Security[1]["machine"] != nil
			if len(groups[o.ID]) != 1 {
				t.Errorf("%s %s: operation %q is in the groups %q, want one", method, path, o.ID, groups[o.ID])
			}
		}
	}
	for o, in := range groups {
		asked, known := asks[o]
		if !known {
			t.Errorf("operation %q of %q is not in the document", o, in)
		}
		if asked != (len(roles.Of(o)) > 0) {
			t.Errorf("operation %q: asks for a credential %v, and its roles are %q", o, asked, roles.Of(o))
		}
		if asked && !roles.Allows(roles.Operator, o) {
			t.Errorf("operation %q: the operator may not use it", o)
		}
		for _, r := range []roles.Role{"", "root", "Operator"} {
			if roles.Allows(r, o) {
				t.Errorf("operation %q: role %q may use it", o, r)
			}
		}
	}
	for _, r := range roles.All() {
		if roles.Allows(r, "no-such-operation") || roles.Allows(r, "") {
			t.Errorf("role %q may use what is not in the table", r)
		}
	}
}

// What each role exists for, and what it must not reach.
func TestRolesAreApart(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		role        roles.Role
		may, mayNot []string
	}{
		{roles.Viewer, []string{"get-host", "list-audit", "get-sm"}, []string{"assign-host", "verify-backup", "get-backup", "approve-review"}},
		{roles.Tenant, []string{"list-tenants", "get-cluster", "watch-host", "attestation-result", "release-host", "create-cluster", "delete-cluster"}, []string{
			"assign-host", "create-tenant", "use-cluster", "stop-using-cluster", "label-cluster", "set-tenant-quota", "list-events", "watch-events", "list-audit", "list-quarantined-pkeys", "get-fabric", "list-racks",
			roles.Metrics, roles.Conditions, roles.UFM,
		}},
		{roles.Scheduler, []string{"create-tenant", "create-cluster", "assign-host"}, []string{"list-audit", "import-inventory", "get-sealed-keys", "confirm-rma"}},
		{roles.SecurityAdmin, []string{"rotate-host-authority", "waive-reference", "list-audit"}, []string{"assign-host", "approve-reference", "import-inventory", "create-cluster"}},
		{roles.Approver, []string{"approve-reference", "confirm-rma", "get-review"}, []string{"learn-reference", "start-rma", "draft-topospec-revision", "list-audit", "assign-host"}},
		{roles.Auditor, []string{"list-audit", "verify-backup", "get-host"}, []string{"accept-audit-break", "get-backup", "set-clock", "release-host"}},
	} {
		for _, o := range tt.may {
			if !roles.Allows(tt.role, o) {
				t.Errorf("%s may not %s", tt.role, o)
			}
		}
		for _, o := range tt.mayNot {
			if roles.Allows(tt.role, o) {
				t.Errorf("%s may %s", tt.role, o)
			}
		}
	}
}

func TestRoleNames(t *testing.T) {
	t.Parallel()
	for _, want := range roles.All() {
		var got roles.Role
		if err := got.UnmarshalText([]byte(want)); err != nil || got != want {
			t.Errorf("%s: %v, %v", want, got, err)
		}
	}
	var r roles.Role
	if err := r.UnmarshalText([]byte("root")); err == nil || !strings.Contains(err.Error(), "want viewer, tenant, scheduler, ") || !strings.Contains(err.Error(), " or auditor") {
		t.Errorf("root: %v", err)
	}
}

const document, begins, ends = "../../docs/operate/roles.md", "<!-- table: begin -->\n", "<!-- table: end -->\n"

// The document has the table as it is; -update writes it.
func TestDocumentHasTheTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begins)
	has, after, closed := strings.Cut(rest, ends)
	if !ok || !closed {
		t.Fatalf("%s has no marks %q and %q", document, begins, ends)
	}
	want := markdown()
	if has == want {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the table says; go test ./api/roles -run Document -update writes it", document)
	}
	if err := os.WriteFile(document, []byte(before+begins+want+ends+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func markdown() string {
	var out strings.Builder
	out.WriteString("| What it does |")
	for _, r := range roles.All() {
		out.WriteString(" " + string(r) + " |")
	}
	out.WriteString(" Operations |\n|---|" + strings.Repeat("---|", len(roles.All())+1) + "\n")
	for _, g := range roles.Table() {
		if len(g.Roles) == 0 {
			continue
		}
		out.WriteString("| " + g.Does + " |")
		for _, r := range roles.All() {
			mark := " |"
			if slices.Contains(g.Roles, r) {
				mark = " yes |"
			}
			out.WriteString(mark)
		}
		ops := slices.DeleteFunc(slices.Clone(g.Operations), func(o string) bool { return slices.Contains([]string{roles.Metrics, roles.Conditions, roles.UFM}, o) })
		out.WriteString(" `" + strings.Join(ops, "` `") + "` |\n")
	}
	return out.String()
}
