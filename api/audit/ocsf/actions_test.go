package ocsf_test

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"portcullis/api/audit/chain"
	"portcullis/api/audit/ocsf"
	"portcullis/api/events"
)

// formed are expressions for an action that are no literal, by the directory that has them: each action that they may be.
var formed = map[string][]string{
	`api/measuredboot "reference." + action`: {"reference.learn", "reference.waive", "reference.approve", "reference.expire"},
	`api/rma "topospec.rma." + action`:       {"topospec.rma.start", "topospec.rma.draft", "topospec.rma.recable", "topospec.rma.confirm", "topospec.rma.cancel"},
	`api/fabric/keyops action`:               {"fabric.keys", "fabric.keys.lend", "fabric.keys.move", "fabric.keys.retire", "fabric.keys.sa_key", "fabric.keys.sealed"},
	`api/keyring r.o.Words.Name + ".rotate"`: {"host-authority.rotate", "receipt-keys.rotate", "result-keys.rotate"},
	`api/events "event." + e.Type`:           nil, // all kinds of events: TestEventsHaveSeverities
	`api/topology "topospec." + why.action`:  {"topospec.draft", "topospec.approve", "topospec.reject", "topospec.activate", "topospec.rollback", "topospec.keep"},
	`api/backup action`:                      {"backup.create", "backup.stream"},
	`api/admission action`:                   {"review.approve", "review.reject"},
	`api/admission chain.BranchAction`:       {chain.BranchAction},
	`api/audit/chain AcceptAction`:           {chain.AcceptAction},
	`api/locks c.action`:                     {"lock.order", "lock.release", "lock.retain"},
	`api/audit c.Action`:                     nil, // of a change, which is found where it is made
}

const root = "../../.."

// TestEveryActionIsKnown reads the source of the service: each action that it writes to the audit log has an activity.
func TestEveryActionIsKnown(t *testing.T) {
	t.Parallel()
	found, used := 0, map[string]bool{}
	for _, tree := range []string{"api", "cmd/portcullisd"} {
		err := filepath.WalkDir(filepath.Join(root, tree), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			dir, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				value := actionOf(n)
				if value == nil {
					return true
				}
				found++
				if text, literal := value.(*ast.BasicLit); literal {
					action, err := strconv.Unquote(text.Value)
					if err != nil {
						t.Error(err)
					}
					known(t, action, path)
					return true
				}
				var text strings.Builder
				if err := printer.Fprint(&text, fset, value); err != nil {
					t.Error(err)
				}
				key := filepath.ToSlash(dir) + " " + text.String()
				list, is := formed[key]
				if !is {
					t.Errorf("%s: the action %s is not in the list of this test: add each action that it may be", path, key)
				}
				used[key] = true
				for _, action := range list {
					known(t, action, path)
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 60 {
		t.Errorf("%d entries of the audit log are found in the source: the test does not see them any more", found)
	}
	for key := range formed {
		if !used[key] {
			t.Errorf("%s is in no source any more", key)
		}
	}
}

// actionOf returns the action of an entry or change of the audit log that is made in n, nil otherwise.
func actionOf(n ast.Node) ast.Expr {
	lit, is := n.(*ast.CompositeLit)
	if !is {
		return nil
	}
	name := ""
	switch kind := lit.Type.(type) {
	case *ast.Ident:
		name = kind.Name
	case *ast.SelectorExpr:
		if of, is := kind.X.(*ast.Ident); !is || of.Name != "audit" && of.Name != "chain" {
			return nil
		}
		name = kind.Sel.Name
	}
	if name != "Entry" && name != "Change" {
		return nil
	}
	var action ast.Expr
	actor := false
	for _, e := range lit.Elts {
		pair, is := e.(*ast.KeyValueExpr)
		if !is {
			continue
		}
		if key, is := pair.Key.(*ast.Ident); is {
			switch key.Name {
			case "Action":
				action = pair.Value
			case "Actor":
				actor = true
			}
		}
	}
	if !actor {
		return nil
	}
	return action
}

// known wants an action in the table: others have an activity_name that is the action.
func known(t *testing.T, action, path string) {
	t.Helper()
	e := ocsf.Of(&chain.Entry{Seq: 1, Actor: "ann", Action: action, Object: "x"})
	if e.ActivityID == int(ocsf.Other) && action != "token.refuse" {
		t.Errorf("%s: the action %s has no activity: add it to api/audit/ocsf/actions.go", path, action)
	}
}

// TestEventsHaveSeverities compares the severities of events with the catalogue.
func TestEventsHaveSeverities(t *testing.T) {
	t.Parallel()
	want := map[string]ocsf.Severity{events.Info: ocsf.Informational, events.Notice: ocsf.Informational, events.Warning: ocsf.Medium, events.Critical: ocsf.Critical}
	for _, k := range events.Kinds() {
		e := ocsf.Of(&chain.Entry{Seq: 1, Actor: "service", Action: "event." + k.Type, Object: "x"})
		if s, known := want[k.Severity]; !known || e.SeverityID != int(s) {
			t.Errorf("%s is %s: severity_id %d, want %d", k.Type, k.Severity, e.SeverityID, s)
		}
	}
}
