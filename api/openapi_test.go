package api_test

import (
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/reference/openapi.yaml")

const committed = "../docs/reference/openapi.yaml"

// The committed document is what reviewers and client authors read; it must be
// the one that is served.
func TestOpenAPIDocument(t *testing.T) {
	f := newFixture(t)
	got := f.do("GET", "/openapi.yaml", "", "").Body.Bytes()
	if *update {
		if err := os.WriteFile(committed, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(got), string(want)); d != "" {
		t.Errorf("served and committed document differ; rewrite it with: go test ./api -run OpenAPI -update (-served +committed):\n%s", d)
	}
}

// TestOpenAPIDocumentIsComplete checks what linters of OpenAPI documents ask for, and that problems are described.
func TestOpenAPIDocumentIsComplete(t *testing.T) {
	f := newFixture(t)
	var doc struct {
		OpenAPI string `json:"openapi"`
		Paths   map[string]map[string]struct {
			OperationID string         `json:"operationId"`
			Summary     string         `json:"summary"`
			Description string         `json:"description"`
			Tags        []string       `json:"tags"`
			Responses   map[string]any `json:"responses"`
			Parameters  []struct {
				Name        string `json:"name"`
				Description string `json:"description"`
			} `json:"parameters"`
		} `json:"paths"`
		Tags []struct {
			Name        string `json:"name"`
			Description string `json:"description"`
		} `json:"tags"`
		Servers []struct {
			URL string `json:"url"`
		} `json:"servers"`
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(f.do("GET", "/openapi.json", "", "").Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("openapi %q, want 3.1.0", doc.OpenAPI)
	}
	if len(doc.Paths) == 0 {
		t.Error("no paths")
	}
	if len(doc.Servers) == 0 {
		t.Error("no servers")
	}
	described := make(map[string]bool)
	for _, tag := range doc.Tags {
		described[tag.Name] = tag.Description != ""
	}
	ids := make(map[string]bool)
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if ids[op.OperationID] {
				t.Errorf("two operations are called %s", op.OperationID)
			}
			ids[op.OperationID] = true
			if op.Description == "" || len(op.Tags) == 1 && !described[op.Tags[0]] {
				t.Errorf("%s %s has no description, or its tag %q has none", method, path, op.Tags)
			}
			for _, p := range op.Parameters {
				if p.Description == "" {
					t.Errorf("%s %s: parameter %s has no description", method, path, p.Name)
				}
			}
			if op.OperationID == "" || op.Summary == "" || len(op.Tags) != 1 || op.Responses["default"] == nil || len(op.Responses) < 2 {
				t.Errorf("%s %s: %+v: want id, summary, one tag, a success and the problem", method, path, op)
			}
		}
	}
	if doc.Components.Schemas["Problem"] == nil || doc.Components.Schemas["ErrorModel"] != nil {
		t.Error("schemas: want Problem, and not the library's ErrorModel")
	}
}
