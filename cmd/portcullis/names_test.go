package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/credential"
	"portcullis/cmd/portcullis/cli"
)

// TestNames has tenants use names of their own, against a service that really decides.
func TestNames(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/names",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(e *testscript.Env) error {
			file := "tokens:\n"
			for name, is := range map[string]string{
				"olga": "role: operator", "physics": "role: tenant, tenants: [physics]", "chem": "role: tenant, tenants: [chem]", "both": "role: tenant, tenants: [chem, physics]",
			} {
				token, digest := credential.New()
				file += fmt.Sprintf("- {name: %s, sha256: %s, %s}\n", name, digest, is)
				if err := os.WriteFile(filepath.Join(e.WorkDir, name+".token"), []byte(token), 0o600); err != nil {
					return err
				}
			}
			tokens, err := credential.Parse("tokens.yaml", []byte(file))
			if err != nil {
				return err
			}
			s := apitest.NewSite(t)
			s.Register("n1")
			server := apitest.Start(t, s, func(o *api.Options) { o.Tokens = tokens })
			for name, value := range map[string]string{
				"HOME": e.WorkDir, "XDG_CONFIG_HOME": e.WorkDir,
				cli.EnvService: server.URL, cli.EnvCA: server.CAFile, cli.EnvTokenFile: e.WorkDir + "/olga.token",
			} {
				e.Setenv(name, value)
			}
			return nil
		},
	})
}
