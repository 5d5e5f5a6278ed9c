package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"portcullis/attest/tpm/tpmtest"
	"portcullis/cmd/internal/program"
	"portcullis/fabricsm/ib"
	"portcullis/packaging/testenv/loopback"
)

// stage is everything that runs beside the story, and where it is.
type stage struct {
	dir      string // scratch directory of everything below
	programs string // directory of the product's programs
	hosts    []host
	options  stageOptions
	lab      lab
	reader   reader
	mkeys    map[ib.GUID]ib.MKey // of devices, as the operator exported them; empty: they have none
	tpms     map[string]*tpmtest.TPM
	service  *program.Process
	claim    *loopback.Claim // of the address
	address  string          // of the service, host:port
}

// stageOptions are what the caller of the program chose.
type stageOptions struct {
	kind   fabricKind
	reader string // name of the reader; empty: the best there is
	keep   bool   // the scratch directory
	stay   func() // is called when the story is over and the stage is to stay; nil: it is not to
}

// newStage makes the scratch directory. Its name is short because the path of
// a TPM's socket must fit into 107 bytes.
func newStage(programs string, o stageOptions) (*stage, error) {
	dir, err := os.MkdirTemp("", "portcullis-")
	if err != nil {
		return nil, fmt.Errorf("make a scratch directory: %w", err)
	}
	return &stage{dir: dir, programs: programs, options: o, hosts: plannedHosts(), tpms: map[string]*tpmtest.TPM{}}, nil
}

// strike ends what runs and removes the scratch directory. It works on a
// stage that is only half set.
func (s *stage) strike(keep bool) error {
	if s.service != nil {
		s.service.Stop()
	}
	var errs []error
	for _, t := range s.tpms {
		errs = append(errs, t.Stop())
	}
	if s.lab != nil {
		errs = append(errs, s.lab.Stop())
	}
	if !keep {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

func (s *stage) at(name string) string { return filepath.Join(s.programs, name) }
func (s *stage) path(elems ...string) string {
	return filepath.Join(append([]string{s.dir}, elems...)...)
}

func (s *stage) write(name, text string) error {
	return os.WriteFile(s.path(name), []byte(text), 0o600)
}

// makeFabric starts the simulator on the plan.
func (s *stage) makeFabric(ctx context.Context) (err error) {
	dir := s.path("fabric")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if s.lab, err = startFabric(ctx, s.options.kind, s.programs, dir, netlistText(s.hosts)); err != nil {
		return err
	}
	s.reader = newReader(s.lab.Client(), s.options.reader)
	return nil
}

// makeTPMs creates for each host a TPM of the same throw-away vendor, and the kernel's view of its HCAs.
func (s *stage) makeTPMs(ctx context.Context) error {
	var mu sync.Mutex
	g, setup := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for i, h := range s.hosts {
		g.Go(func() error {
			if err := setup.Err(); err != nil {
				return err
			}
			// The TPM outlives the group, so it belongs to the story's context.
			t, err := tpmtest.Start(ctx, tpmtest.Options{Dir: s.path("t", h.id), CA: s.path("t", "vendor"), Name: h.id, Machine: machine(i)})
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			s.tpms[h.id] = t
			if err := s.plugHCAs(ctx, h); err != nil {
				return err
			}
			return t.PlantEventLog(filepath.Join(s.hostTree(h.id), "sys"))
		})
	}
	return g.Wait()
}

// plugHCAs has the simulator write what Linux shows of a host's HCAs.
func (s *stage) plugHCAs(ctx context.Context, h host) error {
	args := []string{"sysfs", s.path("fabric", "fabric.net"), "--out", s.hostTree(h.id)}
	for _, a := range h.hcas {
		args = append(args, "--hca", a.node)
	}
	_, err := program.Call(ctx, s.at("portcullis-sim"), args...)
	return err
}

func (s *stage) hostTree(id string) string { return s.path("hosts", id) }

// installService makes a fresh installation: keys, certificate, the operator's
// token, and a configuration that names the fabric and the TPM vendor.
func (s *stage) installService(ctx context.Context) error {
	var err error
	if s.claim, err = loopback.New(); err != nil {
		return err
	}
	s.address = s.claim.Address
	if _, err := program.Call(ctx, s.at("portcullisd"), "init", "--dir", s.path("etc")); err != nil {
		return err
	}
	if err := s.addApprover(ctx); err != nil {
		return err
	}
	roots, err := s.tpms[s.hosts[0].id].RootsPEM()
	if err != nil {
		return err
	}
	if err := s.write("vendor-roots.pem", string(roots)); err != nil {
		return err
	}
	return s.write("portcullisd.yaml", s.configuration())
}

func (s *stage) caFile() string { return s.path("etc", "tls", "ca.pem") }

// configuration returns the differences from the reference configuration. ibsim keeps P_Key tables but forgets the bits by
// which a switch port says that it enforces them, so the service is configured to accept the tables alone. It also forgets
// M_Keys, so the service sets none.
func (s *stage) configuration() string {
	enforcement, mkeys := "verified", "auto"
	if s.options.kind == ibsimFabric {
		enforcement, mkeys = "accepted", "ignore"
	}
	return fmt.Sprintf(`listen: %[1]s
tls: {cert: %[2]s/etc/tls/server.pem, key: %[2]s/etc/tls/server.key}
tokens: %[2]s/etc/tokens.yaml
state_dir: %[2]s/state
fabric:
  port: "ibsim:%[3]s/%[4]s"
  enforcement: %[5]s
  audit_period: 1h # else the Subnet Manager may heal what is planted before it is shown
  keys: {root: %[2]s/etc/keys.root, m_key_enable: %[6]s}
# The simulated adapters have no firmware to assure and no settings to lock. A site
# with real ones leaves both out of its configuration.
attestation: {ek: {roots: [%[2]s/vendor-roots.pem]}, assurance: none, require_lock: false}
results: {root: %[2]s/etc/results.root, issuer: "https://%[1]s"}
verify: {drift: {stray: report}} # else the Subnet Manager heals what is planted as soon as it is found
`, s.address, s.dir, s.lab.Client().Socket, smNodeName, enforcement, mkeys)
}

// startService starts portcullisd and waits until it answers.
func (s *stage) startService(ctx context.Context) (err error) {
	s.service, err = program.Start(program.Options{
		Dir: s.dir, Name: "portcullisd", Path: s.at("portcullisd"), Args: []string{"--config", s.path("portcullisd.yaml")},
	})
	if err != nil {
		return err
	}
	return program.Await(ctx, "portcullisd answers", func() (bool, error) {
		if err := s.service.Ended(); err != nil {
			return false, err
		}
		_, err := s.cli(ctx, "sm", "status")
		return err == nil, nil
	})
}

// cli runs one command of the operator's CLI.
func (s *stage) cli(ctx context.Context, args ...string) ([]byte, error) {
	return s.cliAs(ctx, s.path("etc", "operator.token"), args...)
}

// cliAs runs one as the operator whose token is in a file.
func (s *stage) cliAs(ctx context.Context, tokenFile string, args ...string) ([]byte, error) {
	return program.Call(ctx, s.at("portcullis"), append(args,
		"--service", "https://"+s.address, "--ca", s.caFile(), "--token-file", tokenFile)...)
}

// offline runs a command of the CLI that needs no service.
func (s *stage) offline(ctx context.Context, args ...string) ([]byte, error) {
	return program.Call(ctx, s.at("portcullis"), args...)
}

// ask runs a command of the CLI with JSON output and reads it into v.
func (s *stage) ask(ctx context.Context, v any, args ...string) error {
	out, err := s.cli(ctx, append(args, "-o", "json")...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, v); err != nil {
		return fmt.Errorf("portcullis %s: %w in %q", strings.Join(args, " "), err, out)
	}
	return nil
}
