package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/apitest"
	"portcullis/api/credential"
	"portcullis/api/inventory/derive"
	"portcullis/api/topology"
	"portcullis/cmd/portcullis/cli"
	"portcullis/fabricsm/topo"
	"portcullis/fabricsm/topospec"
	"portcullis/fabricsm/topospec/native"
	"portcullis/fabricsm/topospec/topospectest"
)

// TestRevisionScripts runs the real main against the real API over real revisions, and a
// fabric that is cabled as rail-a.yaml says. $OLGA and $BOB are the tokens of two
// operators.
func TestRevisionScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/revisions", RequireUniqueNames: true, Setup: revisionSetup(t),
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

func revisionSetup(t *testing.T) func(*testscript.Env) error {
	return func(e *testscript.Env) error {
		rev := topospectest.Revision(t, topospectest.Small())
		fabric, own := topospectest.Fabric(t, rev)
		next := rev.Clone()
		for i := range next.Links {
			if next.Links[i].Class == topospec.ClassHost {
				next.Links[i] = topospec.Link{A: next.Links[i].A, State: topospec.Reserved}
				break
			}
		}
		foreign := rev.Clone()
		foreign.Fabric = "other"
		for name, r := range map[string]*topospec.Revision{"rail-a.yaml": rev, "next.yaml": next, "foreign.yaml": foreign} {
			if err := os.WriteFile(filepath.Join(e.WorkDir, name), native.AppendTo(nil, r, native.YAML), 0o600); err != nil {
				return err
			}
		}
		keys, err := signedManifests(e.WorkDir)
		if err != nil {
			return err
		}
		site := apitest.NewSite(t, func(o *admission.Options) { o.Manifests = keys })
		keep := topology.New(topology.Options{
			Store: site.Store, Log: slog.New(slog.DiscardHandler),
			Look: func() (*topology.Sight, error) {
				return &topology.Sight{At: noon, Fabric: fabric, SM: own, Complete: true}, nil
			},
		})
		var tokens []byte
		tokens = append(tokens, "tokens:\n"...)
		for _, name := range []string{"olga", "bob"} {
			token, digest := credential.New()
			tokens = fmt.Appendf(tokens, "- {name: %s, role: operator, sha256: %s}\n", name, digest)
			if err := os.WriteFile(filepath.Join(e.WorkDir, name+".token"), []byte(token+"\n"), 0o600); err != nil {
				return err
			}
		}
		known, err := credential.Parse("tokens.yaml", tokens)
		if err != nil {
			return err
		}
		derived := derive.New(derive.Options{
			Store: site.Store, Revisions: keep, Seen: func() (*topo.Fabric, error) { return fabric, nil },
		})
		s := apitest.Start(t, site, func(o *api.Options) { o.Topospec, o.Derived, o.Tokens = keep, derived, known })
		e.Setenv("HOME", e.WorkDir)
		e.Setenv("OLGA", filepath.Join(e.WorkDir, "olga.token"))
		e.Setenv("BOB", filepath.Join(e.WorkDir, "bob.token"))
		e.Setenv(cli.EnvService, s.URL)
		e.Setenv(cli.EnvCA, s.CAFile)
		e.Setenv(cli.EnvTokenFile, e.Getenv("OLGA"))
		return nil
	}
}
