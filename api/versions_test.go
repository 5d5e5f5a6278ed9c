package api

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"portcullis/api/openapi"
	"portcullis/api/rules"
)

// ruled is what a document says of an operation.
type ruled struct {
	ID         string `json:"operationId"`
	Parameters []struct {
		Name, In string
		Required bool
	}
	Responses map[string]struct {
		Content map[string]any
		Headers map[string]any
	}
}

// match reports whether the operation compares If-Match, and whether it demands it.
func (r *ruled) match() (compares, demands bool) {
	for _, p := range r.Parameters {
		if p.Name == "If-Match" && p.In == "header" {
			return true, p.Required
		}
	}
	return false, false
}

// tagged reports whether each answer with an object has its ETag.
func (r *ruled) tagged() bool {
	for status, answer := range r.Responses {
		if strings.HasPrefix(status, "2") && len(answer.Content) > 0 && answer.Headers["ETag"] == nil {
			return false
		}
	}
	return true
}

// remover is for the routes of a socket alone.
type remover struct{ HostRemover }

// TestEveryOperationHasAVersionRule compares the operations of the service and of a socket with the rules of versions.
func TestEveryOperationHasAVersionRule(t *testing.T) {
	met, all := map[string]bool{}, rules.Versions()
	for _, d := range []*openapi.Document{
		new(Server).routes(chi.NewRouter()),
		(&Server{local: true}).localRoutes(chi.NewRouter(), remover{}),
	} {
		var doc struct {
			Paths map[string]map[string]ruled
		}
		if err := json.Unmarshal(d.JSON(), &doc); err != nil {
			t.Fatal(err)
		}
		for _, methods := range doc.Paths {
			for method, r := range methods {
				rule, known := all[r.ID]
				if reads := method == "get"; reads == known {
					t.Errorf("%s %s: a rule is there: %v; operations that do more than read have one in package rules, and no others", method, r.ID, known)
				}
				met[r.ID] = met[r.ID] || known
				compares, demands := r.match()
				if compares != rule.Compares() || demands != (rule == rules.MustName) {
					t.Errorf("%s: If-Match is compared: %v, demanded: %v; the rule is %d", r.ID, compares, demands, rule)
				}
				if compares && !r.tagged() {
					t.Errorf("%s compares If-Match, and answers an object without its ETag", r.ID)
				}
			}
		}
	}
	for id := range all {
		if !met[id] {
			t.Errorf("package rules has %s, and no route does", id)
		}
	}
}
