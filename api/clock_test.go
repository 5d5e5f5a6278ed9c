package api_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/admission"
	"portcullis/api/admission/admissiontest"
	"portcullis/api/apitest"
	"portcullis/api/client"
	timekeeper "portcullis/api/clock/keeper"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	"portcullis/api/store/storetest"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/attest/reference"
)

// clocked is a service over HTTPS whose machine shows a time that a test sets.
type clocked struct {
	t       *testing.T
	store   *store.Store
	policy  *attest.Policy
	machine time.Time
	host    *attesttest.Host

	keeper *timekeeper.Keeper
	site   *admissiontest.Site
	server *apitest.Server
}

// start begins the service over the store, as a restart does.
func (c *clocked) start() {
	c.t.Helper()
	c.keeper = timekeeper.New(timekeeper.Options{
		Store: c.store, Log: storetest.Quiet(), Wall: func() time.Time { return c.machine }, Elapsed: func() time.Duration { return 0 },
	})
	fatal(c.t, c.keeper.Read(c.t.Context()))
	c.site = admissiontest.New(c.t, func(o *admission.Options) {
		o.Store, o.Policy, o.Now, o.Clock = c.store, c.policy, c.keeper.Now, c.keeper
	})
	c.server = apitest.Start(c.t, apitest.Real{Service: c.site.Service()}, unlimited, func(o *api.Options) { o.Clock = c.keeper })
}

// restart ends the service, which records the time, and begins it where the machine shows another time.
func (c *clocked) restart(machine time.Time) {
	c.t.Helper()
	fatal(c.t, c.server.Stop())
	c.keeper.Flush(c.t.Context())
	c.machine = machine
	c.start()
}

// attest has the host boot and attest.
func (c *clocked) attest() error {
	c.t.Helper()
	ca, err := os.ReadFile(c.server.CAFile)
	fatal(c.t, err)
	cl, err := client.New(client.Options{URL: c.server.URL, CA: ca})
	fatal(c.t, err)
	channel, err := cl.OpenChannel(c.t.Context())
	fatal(c.t, err)
	defer channel.Close()
	c.host.Reboot()
	c.host.Statement.CollectedAt = c.machine
	ses, err := channel.OpenSession(c.t.Context(), c.host.Request())
	if err != nil {
		return err
	}
	ev, err := c.host.Answer(ses, channel.Binding())
	fatal(c.t, err)
	_, err = channel.SubmitEvidence(c.t.Context(), ses.ID, ev)
	return err
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Code != code {
		t.Errorf("%v, want %s", err, code)
	}
}

// TestWaiverStaysOver, T146: a host attests under a waiver. Once that is over, a clock that is set back makes no evidence
// accepted under it, before the clock has caught up or after.
func TestWaiverStaysOver(t *testing.T) {
	t.Parallel()
	start := attesttest.Epoch
	vendor, err := attesttest.NewVendor("Example TPM")
	fatal(t, err)
	host, err := vendor.NewHost("h1", 1)
	fatal(t, err)
	c := &clocked{t: t, store: store.New(memory.New(time.Now), ""), policy: attest.DefaultPolicy(), machine: start, host: host}
	fatal(t, c.policy.AddCertificates(vendor.PEM()))
	waiver := reference.Set{
		Class: reference.DefaultClass, Version: 1, State: reference.Approved, Waiver: true, Owner: "ann", Approver: "bob", Reason: "INC-7",
		Made: start, Trusted: start, Expires: start.Add(3 * time.Hour),
	}
	admissiontest.Trust(t, c.store, waiver)
	c.start()
	hca := host.Statement.HCAs[0]
	file := fmt.Appendf(nil, "hosts:\n- id: h1\n  ek_sha256: %s\n  hcas:\n  - node_guid: %v\n    ports:\n", host.EKDigest(), hca.NodeGUID)
	for i, p := range hca.Ports {
		file = fmt.Appendf(file, "    - {port: %d, guid: %v, cable: 0x10/%d}\n", p.Num, p.GUID, i+1)
	}
	c.site.Expect("h1", file)
	fatal(t, c.attest())

	c.restart(start.Add(4 * time.Hour))
	c.site.Assign("h1")
	wantCode(t, c.attest(), v1.CodeEvidenceRefused)
	if d := c.site.Host("h1").Status.LastDenial; d == nil || d.Code != string(attest.ReasonReference) {
		t.Fatalf("%+v; want the evidence refused as the waiver is over", d)
	}

	c.restart(start.Add(time.Hour))
	wantCode(t, c.attest(), v1.CodeUnavailable)
	if h := c.site.Host("h1"); h.Status.Phase != v1.PhaseAwaiting {
		t.Errorf("host %+v", h.Status)
	}
	c.site.Release("h1") // removals go on

	c.restart(start.Add(6 * time.Hour))
	c.site.Assign("h1")
	wantCode(t, c.attest(), v1.CodeEvidenceRefused)
	admissiontest.Trust(t, c.store, attesttest.References()[0])
	fatal(t, c.attest())
}
