package agent

import (
	"bytes"
	"context"
	"errors"
	"time"

	"portcullis/agent/hca"
	"portcullis/attest"
)

// statementFresh is how long a measured statement is sent again before another one is measured. It is well below the limit
// of the service.
const statementFresh = 5 * time.Minute

// Collect reads the host and returns its statement, not measured.
func Collect(ctx context.Context, c *Config, version string, now time.Time) (*attest.Statement, error) {
	image, err := c.image()
	if err != nil {
		return nil, err
	}
	site, err := c.Site()
	if err != nil {
		return nil, err
	}
	f, err := hca.Collect(ctx, c.Ways(), c.Procfs, site)
	if err != nil {
		return nil, fail(ClassHCA, "", err)
	}
	log, err := c.eventLog()
	if err != nil {
		return nil, err
	}
	s := &attest.Statement{
		Version: attest.StatementVersion, Host: c.Host, BootID: f.BootID,
		CollectedAt: now.UTC().Truncate(time.Second), Agent: version, Image: image, EventLog: eventLogDigest(log), Tools: f.Tools,
		Board: f.Board, HCAs: f.HCAs,
	}
	if _, err := s.Encode(); err != nil {
		return nil, fail(ClassHCA, "", err)
	}
	return s, nil
}

// register is the TPM as measuring needs it.
type register interface {
	ReadPCRs(ctx context.Context, pcrs []int) ([][]byte, error)
	Boot(ctx context.Context) (attest.Boot, error)
}

// extender extends the agent PCR.
type extender interface {
	Extend(ctx context.Context, pcr int, digest []byte) error
}

// measure makes sure that a fresh statement is the last record in the agent PCR. It survives a crash between any two steps:
// the list is saved before the TPM is extended, and compared with the register at the next start.
func (r *run) measure(ctx context.Context, read register, tpm extender) (*measured, error) {
	s, err := Collect(ctx, r.config, r.version, r.now())
	if err != nil {
		return nil, err
	}
	if err := r.recallLocks(s); err != nil {
		return nil, err
	}
	start := attest.Start{Agent: s.Agent, Image: s.Image}
	m, started, err := r.recall(ctx, read, start)
	if err != nil {
		return nil, err
	}
	if r.stillTrue(m, s) {
		return m, nil
	}
	if len(m.Digests) == attest.MaxStatements {
		return nil, failf(ClassReboot, rebootHint, "%d statements were measured in this boot, the limit for one boot", len(m.Digests))
	}
	if m.Statement, err = s.Encode(); err != nil {
		return nil, fail(ClassHCA, "", err)
	}
	sum := attest.StatementDigest(m.Statement)
	m.Digests = append(m.Digests, sum)
	if err := r.state.save(measuredFile, m); err != nil {
		return nil, fail(ClassOther, roomHint, err)
	}
	if !started {
		if err := tpm.Extend(ctx, r.config.AgentPCR, start.Digest()); err != nil {
			return nil, fail(ClassTPM, "", err)
		}
	}
	if err := tpm.Extend(ctx, r.config.AgentPCR, sum); err != nil {
		return nil, fail(ClassTPM, "", err)
	}
	r.log.Info("statement measured", "pcr", r.config.AgentPCR, "hcas", len(s.HCAs), "statement", len(m.Digests))
	return m, nil
}

// recall finds out how much of the saved list the register holds: all, all but the last (a crash before the TPM was
// extended), the start alone, or nothing since the host was booted.
func (r *run) recall(ctx context.Context, read register, start attest.Start) (m *measured, started bool, err error) {
	values, err := read.ReadPCRs(ctx, []int{r.config.AgentPCR})
	if err != nil {
		return nil, false, fail(ClassTPM, "", err)
	}
	value := values[0]
	if bytes.Equal(value, make([]byte, len(value))) {
		return &measured{Start: start}, false, nil
	}
	saved, err := r.state.measured()
	switch {
	case errors.Is(err, errGarbled):
		r.log.Warn("the list of measured statements is lost", "error", err)
	case err != nil:
		return nil, false, fail(ClassOther, r.state.hint(err), err)
	}
	if saved.Start == start {
		for _, n := range []int{len(saved.Digests), len(saved.Digests) - 1} {
			if n >= 0 && bytes.Equal(value, attest.OpenPCRValue(start, saved.Digests[:n])) {
				if n < len(saved.Digests) {
					saved.Digests, saved.Statement = saved.Digests[:n], nil
				}
				return &saved, true, nil
			}
		}
	}
	return nil, false, failf(ClassReboot, "reboot the host; if that does not help, mask other units that extend this PCR (systemd-pcrmachine, systemd-pcrfs)",
		"PCR %d holds measurements that this agent has no record of", r.config.AgentPCR)
}

// stillTrue reports whether the last statement says what s says and is fresh.
func (r *run) stillTrue(m *measured, s *attest.Statement) bool {
	n := len(m.Digests)
	if n == 0 || !bytes.Equal(m.Digests[n-1], attest.StatementDigest(m.Statement)) {
		return false
	}
	last, err := attest.ParseStatement(m.Statement)
	if err != nil {
		return false
	}
	age := s.CollectedAt.Sub(last.CollectedAt)
	last.CollectedAt = s.CollectedAt
	a, errA := last.Encode()
	b, errB := s.Encode()
	return errA == nil && errB == nil && bytes.Equal(a, b) && age >= 0 && age < statementFresh
}
