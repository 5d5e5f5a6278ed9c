package agent

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"portcullis/agent/hca"
	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest/tpm"
	"portcullis/fabricsm/ib"
)

// Options are what a run needs besides its configuration.
type Options struct {
	Config  Config
	Version string       // of the agent, part of the measurement
	Log     *slog.Logger // progress
	Notify  Notifier     // service manager; nil: none
	Goal    Goal         // how far to go

	write func(path string, data []byte) error // nil: writeFile; a test's disk is full
}

// run is one provisioning run.
type run struct {
	config  *Config
	version string
	log     *slog.Logger
	notify  Notifier
	goal    Goal
	now     func() time.Time
	state   *stateDir
	client  *client.Client
	phase   v1.Phase // last one reported by the service
	rounds  int      // of locking adapters
	opened  int      // adapters that leave
	began   time.Time
	capped  bool // the register was found capped: an earlier run handed the host over
	// loosened holds the results for adapters that refused a file because of its binding, by node GUID.
	loosened map[ib.GUID]looser
}

// Provision attests the host and goes on to the goal: by default until it is
// admitted. It returns nil when it is there and otherwise an *Error, and keeps the outcome in
// the state folder; but a run that cannot hand the host over and fails leaves the outcome of
// one that did, in the same boot, where it is. Network faults are retried until Config.Timeout is over.
func Provision(ctx context.Context, o Options) error {
	if err := o.Config.Check(); err != nil {
		return err
	}
	r := &run{config: &o.Config, version: o.Version, log: o.Log, notify: o.Notify, goal: o.Goal, now: time.Now}
	trace := newTrace()
	r.log, r.began = o.Log.With("trace_id", trace.String()), r.now()
	if r.notify == nil {
		r.notify = silent{}
	}
	r.starting()
	var err error
	if r.client, err = newClient(&o.Config, o.Version, trace.parent()); err != nil {
		return err
	}
	defer r.client.Close()
	if r.state, err = openState(o.Config.StateDir, r.log); err != nil {
		return err
	}
	defer r.state.close()
	if o.write != nil {
		r.state.write = o.write
	}
	limited, cancel := context.WithTimeout(ctx, o.Config.Timeout)
	defer cancel()
	err = r.do(limited)
	if err != nil && ctx.Err() != nil {
		err = failf(ClassOther, "run the agent again; nothing is lost", "interrupted: %w", err)
	}
	r.keep(err)
	r.log.Info("the run is over", "after", r.elapsed())
	return err
}

func newClient(c *Config, version, traceparent string) (*client.Client, error) {
	ca, err := readCA(c.CA)
	if err != nil {
		return nil, failf(ClassUsage, "copy the service's CA certificate to the host and name it with --ca", "CA of the service: %w", err)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return nil, failf(ClassUsage, "copy the service's CA certificate to the host and name it with --ca", "CA of the service: %s has no PEM certificate", c.CA)
	}
	cl, err := client.New(client.Options{URL: c.Service, CA: ca, UserAgent: "portcullis-agent/" + version, Traceparent: traceparent})
	if err != nil {
		return nil, fail(ClassUsage, "check --service and --ca", err)
	}
	return cl, nil
}

// maxCA bounds the file of the service's CA in bytes.
const maxCA = 1 << 20

func readCA(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	ca, err := io.ReadAll(io.LimitReader(f, maxCA+1))
	if err == nil && len(ca) > maxCA {
		err = fmt.Errorf("%s: more than %d bytes", name, maxCA)
	}
	return ca, err
}

// do attests and waits.
func (r *run) do(ctx context.Context) error {
	c, phase, err := r.attest(ctx)
	if err != nil || r.goal != Admitted {
		if c != nil {
			c.Close()
		}
		return err
	}
	return r.await(ctx, r.withCertificate(ctx, c), phase)
}

// attest holds the TPM only while it makes evidence. It returns a client that may read the host's status, and the phase
// that was reported last.
func (r *run) attest(ctx context.Context) (*client.Client, v1.Phase, error) {
	// Before any slow step; but a host that was handed over no longer needs its adapters.
	begun := r.state.has(handOverFile)
	if !begun {
		if _, err := Collect(ctx, r.config, r.version, r.now()); err != nil {
			return nil, "", err
		}
	}
	r.say("opening the TPM")
	dev, err := r.openTPM(ctx)
	if err != nil {
		return nil, "", err
	}
	defer dev.Close()
	if c, phase, err := r.goOn(ctx, dev); c != nil || err != nil {
		return c, phase, err
	}
	if begun { // in an earlier boot
		if _, err := Collect(ctx, r.config, r.version, r.now()); err != nil {
			return nil, "", err
		}
	}
	keys, err := dev.NewKeys(ctx)
	if err != nil {
		return nil, "", fail(ClassTPM, "", err)
	}
	defer r.discard(ctx, keys)
	if !keys.HasCertificate() {
		r.log.Warn("the TPM has no EK certificate; the service must pin its EK", "ek_sha256", keys.EKDigest())
	}
	r.log.Info("keys made", "ek_kind", keys.Claim().Kind, "ek_sha256", keys.EKDigest())
	r.ready()
	result, err := r.submit(ctx, dev, keys)
	if err != nil {
		return nil, "", err
	}
	if r.phase = result.Phase; r.goal.handsOver() {
		r.log.Info("evidence accepted, host handed over", "host", result.Host, "phase", result.Phase)
	} else {
		r.log.Info("evidence accepted", "host", result.Host)
	}
	return r.client.WithToken(result.StatusToken), result.Phase, nil
}

// openTPM waits while another program holds the TPM.
func (r *run) openTPM(ctx context.Context) (*tpm.TPM, error) {
	var dev *tpm.TPM
	err := r.retry(ctx, "the TPM is busy", func() (err error) {
		dev, err = tpm.Open(ctx, r.config.TPM)
		return err
	}, func(err error) bool { return errors.Is(err, tpm.ErrBusy) })
	if err != nil {
		return nil, fail(ClassTPM, "", err)
	}
	return dev, nil
}

// keep writes the outcome down.
func (r *run) keep(err error) {
	boot, _ := hca.BootID(r.config.Procfs) // an outcome without it is of no boot
	if err != nil && r.spares(boot) {
		return
	}
	o := Outcome{Time: r.now().UTC(), Host: r.config.Host, BootID: boot, Phase: r.phase, Run: r.goal.String()}
	if err != nil {
		o.Class, o.Detail = ClassOf(err), err.Error()
	}
	if err := r.state.save(outcomeFile, o); err != nil {
		r.log.Warn("the outcome is not stored", "error", err)
	}
}

// spares reports whether a run that failed leaves the outcome that is kept: it cannot hand
// the host over, and that is the outcome of a run which did, or tried to, in this boot.
func (r *run) spares(boot string) bool {
	if r.goal.handsOver() || boot == "" {
		return false
	}
	var o *Outcome
	if err := r.state.load(outcomeFile, &o); err != nil || o == nil || o.BootID != boot {
		return false
	}
	handedOver := o.Run == Admitted.String() || o.Run == HandedOver.String()
	return handedOver && (o.Class == 0 || r.capped)
}
