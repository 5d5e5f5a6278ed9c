package packaging

import (
	"slices"
	"strings"
	"testing"
)

// find returns the arrow of the longest tree that holds a package.
func find(path string) (arrow, bool) {
	best, found := arrow{}, false
	for _, a := range arrows {
		if within(path, ours+"/"+a.from) && (!found || len(a.from) > len(best.from)) {
			best, found = a, true
		}
	}
	return best, found
}

// broken says which rule an import breaks, or nothing.
func (a arrow) broken(imported string) string {
	if withinAny(imported, a.not) {
		return a.why
	}
	if !within(imported, ours) || within(imported, ours+"/"+a.from) {
		return ""
	}
	if within(imported, ours+"/cmd") && !within(a.from, "cmd") {
		return "nothing imports cmd"
	}
	for _, may := range a.may {
		if may == "" || within(imported, ours+"/"+may) {
			return ""
		}
	}
	return a.why
}

// TestArrows checks every package of ours against the arrow that applies to it, and finds packages without an arrow.
func TestArrows(t *testing.T) {
	for _, p := range goList(t, "./...") {
		if strings.HasSuffix(p.ImportPath, "fabricsm") {
			continue // a package comment only
		}
		a, ok := find(p.ImportPath)
		if !ok {
			t.Errorf("%s falls under no arrow: say in packaging/arrows_test.go what it may import", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			if why := a.broken(imported); why != "" && !forTests(p.ImportPath) {
				t.Errorf("%s imports %s: %s", p.ImportPath, imported, why)
			}
		}
	}
}

// forTests reports whether a package only helps tests: such a package is named something-test or something-lab, or is the
// recorder of captures, and may import the packages that its tests need. TestNoTestHelpLinked checks that no program links
// one, except for hosts that drills play.
func forTests(path string) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	return strings.HasSuffix(name, "test") && name != "attest" ||
		strings.HasSuffix(name, "lab") ||
		path == ours+"/fabricsm/mad/internal/capture"
}

// TestArrowsBreak shows that the rules refuse what they must.
func TestArrowsBreak(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		broken   bool
	}{
		{"fabricsm/ib", ours + "/fabricsm/mad", true},
		{"fabricsm/ib", "fmt", false},
		{"fabricsm/mad", ours + "/fabricsm/ib", false},
		{"fabricsm/mad", ours + "/fabricsm/topo", true},
		{"fabricsm/route/minhop", ours + "/fabricsm/route", false},
		{"fabricsm/route/minhop", ours + "/fabricsm/mad", true},
		{"fabricsm/sm", ours + "/fabricsm/transport", true},
		{"fabricsm/sm", ours + "/fabricsm/vault", true},
		{"fabricsm/keys", ours + "/fabricsm/mad", true},
		{"fabricsm/keys/keyfile", ours + "/fabricsm/keys", false},
		{"fabricsm/sim", ours + "/fabricsm/sm", true},
		{"fabricsm/sim", ours + "/fabricsm/smart", true},
		{"attest/ek", ours + "/firmware", true},
		{"firmware", ours + "/attest", true},
		{"agent", ours + "/api/client", false},
		{"agent", ours + "/api/store", true},
		{"agent", ours + "/fabricsm/mad", true},
		{"api/admission", "net/http", true},
		{"api/admission", "net/netip", false},
		{"api/admission", ours + "/fabricsm/sm", true},
		{"api", ours + "/fabricsm/mad", true},
		{"api", ours + "/cmd/internal/version", true},
		{"cmd/portcullis", ours + "/cmd/internal/version", false},
		{"cmd/portcullis-sim/drills", ours + "/cmd/portcullisd/posture", false},
		{"cmd/portcullis-sim/drills", ours + "/cmd/portcullisd/smrole", true},
	} {
		a, ok := find(ours + "/" + tt.from)
		if !ok {
			t.Errorf("%s falls under no arrow", tt.from)
			continue
		}
		if why := a.broken(tt.to); (why != "") != tt.broken {
			t.Errorf("%s imports %s: broken = %q, want broken %v", tt.from, tt.to, why, tt.broken)
		}
	}
}

// TestEtcdBehindStore holds etcd behind one package of ours.
func TestEtcdBehindStore(t *testing.T) {
	users := []string{}
	for _, p := range goList(t, "./...") {
		if slices.ContainsFunc(p.Imports, func(i string) bool { return within(i, "go.etcd.io") }) {
			users = append(users, p.ImportPath)
		}
	}
	for _, user := range users {
		if user != ours+"/api/store/etcd" && user != ours+"/api/store/etcd/etcdtest" {
			t.Errorf("%s imports etcd: ask api/store/etcd instead", user)
		}
	}
}
