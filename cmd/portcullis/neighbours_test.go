package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"portcullis/api"
	"portcullis/api/apitest"
	"portcullis/api/credential"
	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// TestNeighbours runs the programs that Slurm calls, that which drives Ironic and that which taints nodes of Kubernetes against a service that really decides. Hosts attest and the fabric follows by themselves,
// but for gpu-3, which is not booted.
func TestNeighbours(t *testing.T) {
	scripts, err := filepath.Abs("../../packaging")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/neighbours",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(e *testscript.Env) error {
			s := apitest.NewSite(t)
			s.Register("gpu-1", "gpu-2", "gpu-3", "gpu-4")
			operator, digest := credential.New()
			scheduler, its := credential.New()
			viewer, shown := credential.New()
			tokens, err := credential.Parse("tokens.yaml", fmt.Appendf(nil, `tokens:
- {name: olga, role: operator, sha256: %s}
- {name: slurm, role: scheduler, sha256: %s, p_keys: [0x0100-0x01ff], hosts: ['gpu-*']}
- {name: kubernetes, role: viewer, sha256: %s}
`, digest, its, shown))
			if err != nil {
				return err
			}
			for name, token := range map[string]string{"operator.token": operator, "slurm.token": scheduler, "kubernetes.token": viewer} {
				if err := os.WriteFile(filepath.Join(e.WorkDir, name), []byte(token), 0o600); err != nil {
					return err
				}
			}
			server := apitest.Start(t, s, func(o *api.Options) { o.Tokens = tokens })
			follow(t, s, "gpu-1", "gpu-2")
			for name, value := range map[string]string{
				"HOME": e.WorkDir, "XDG_CONFIG_HOME": e.WorkDir, "SLURM": scripts + "/slurm", "PORTCULLIS_SLURM": e.WorkDir + "/slurm.env",
				"KUBERNETES": scripts + "/kubernetes", "PORTCULLIS_KUBERNETES": e.WorkDir + "/kubernetes.env", "IRONIC": scripts + "/ironic", "PORTCULLIS_IRONIC": e.WorkDir + "/ironic.env",
				cli.EnvService: server.URL, cli.EnvCA: server.CAFile, cli.EnvTokenFile: e.WorkDir + "/operator.token",
				"PATH": e.WorkDir + "/bin:" + e.Getenv("PATH"),
			} {
				e.Setenv(name, value)
			}
			programs, err := filepath.Glob(e.WorkDir + "/bin/*")
			for _, p := range programs {
				err = errors.Join(err, os.Chmod(p, 0o700))
			}
			return err
		},
	})
}

// follow has hosts attest when they are assigned, one after the other, and the fabric program what is granted and withdrawn.
func follow(t *testing.T, s *apitest.Site, hosts ...string) {
	t.Helper()
	turn := make(chan struct{}, 1)
	for _, id := range hosts {
		changes, err := s.Service().Watch(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for h := range changes {
				turn <- struct{}{}
				switch h.Status.Phase {
				case v1.PhaseAwaiting:
					if s.Host(id).Status.Phase == v1.PhaseAwaiting {
						s.Place(id)
						s.Hand(id)
						s.Program()
					}
				case v1.PhaseReleasing:
					s.Program()
				default:
				}
				<-turn
			}
		}()
	}
}
