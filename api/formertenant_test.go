package api_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"portcullis/api/admission"
	"portcullis/api/admission/admissiontest"
	"portcullis/api/apitest"
	"portcullis/api/client"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
)

// from returns a client of HTTP that connects from an address.
func from(t *testing.T, s *apitest.Server, address string) *http.Client {
	t.Helper()
	pem, err := os.ReadFile(s.CAFile)
	fatal(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	c := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DialContext: d.DialContext, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13, ServerName: "127.0.0.1"},
	}}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// TestFormerTenant: a former tenant has read the EK certificate of a machine. It asks for the machine's sessions from 60
// addresses, with keys in software, and gets them. The machine's own session, opened before, counts, and it opens others,
// from an address of its own. None of the former tenant's sessions is in the store.
func TestFormerTenant(t *testing.T) {
	t.Parallel()
	const addresses, each = 60, 6
	vendor, err := attesttest.NewVendor("Example TPM")
	fatal(t, err)
	host, err := vendor.NewHost("host-1", 1)
	fatal(t, err)
	began := time.Now()
	site := admissiontest.New(t, func(o *admission.Options) {
		fatal(t, o.Policy.AddCertificates(vendor.PEM()))
		o.Now = func() time.Time { return attesttest.Epoch.Add(time.Since(began)) }
	})
	admissiontest.Trust(t, site.Store, attesttest.References()...)
	site.Expect("host-1", inventoryOf(host.Expected()))
	server := apitest.Start(t, apitest.Real{Service: site.Service()})
	ca, err := os.ReadFile(server.CAFile)
	fatal(t, err)
	c, err := client.New(client.Options{URL: server.URL, CA: ca})
	fatal(t, err)
	t.Cleanup(c.Close)
	ch, err := c.OpenChannel(t.Context())
	fatal(t, err)
	host.Statement.CollectedAt = attesttest.Epoch
	own, err := ch.OpenSession(t.Context(), host.Request())
	fatal(t, err)
	before := recordsOf(t, site)

	tenant := *host // knows its certificate
	fatal(t, tenant.NewKeys())
	body, err := json.Marshal(tenant.Ask())
	fatal(t, err)
	var all sync.WaitGroup
	answers := make(chan string, addresses*each)
	for n := range addresses {
		stranger := from(t, server, fmt.Sprintf("127.1.0.%d", n+1))
		all.Go(func() {
			for range each {
				answers <- ask(t.Context(), stranger, server.URL, body)
			}
		})
	}
	all.Wait()
	close(answers)
	for a := range answers {
		if a != "201 Created" {
			t.Fatalf("the former tenant is answered %s: the test has no attacker", a)
		}
	}
	if after := recordsOf(t, site); len(after) != len(before) {
		t.Errorf("%d sessions that nothing proved left %d records in the store", addresses*each, len(after)-len(before))
	}
	if a := ask(t.Context(), from(t, server, "127.2.0.1"), server.URL, body); a != "201 Created" {
		t.Errorf("another session of the machine, from its own address: %s", a)
	}
	ev, err := host.Answer(own, ch.Binding())
	fatal(t, err)
	result, err := ch.SubmitEvidence(t.Context(), own.ID, ev)
	if err != nil || result.Phase != v1.PhaseVerified {
		t.Errorf("the session that the machine had opened before: %+v, %v, want it verified", result, err)
	}
}

// ask asks for a session, again while the service is busy, and returns what was answered.
func ask(ctx context.Context, c *http.Client, url string, body []byte) (answered string) {
	for late := time.Now().Add(time.Minute); time.Now().Before(late); {
		answered = askOnce(ctx, c, url, body)
		busy := strings.HasPrefix(answered, "503 ") || strings.HasPrefix(answered, "Post ") // no turn for the handshake in time
		if !busy {
			break
		}
	}
	return answered
}

func askOnce(ctx context.Context, c *http.Client, url string, body []byte) string {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/attest/sessions", bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.Do(r)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	var s attest.Session
	if resp.StatusCode == http.StatusCreated && (err != nil || json.Unmarshal(text, &s) != nil || s.ID == "") {
		return "no session: " + string(text)
	}
	return resp.Status
}

// recordsOf returns the keys of all that the store holds.
func recordsOf(t *testing.T, s *admissiontest.Site) (keys []string) {
	t.Helper()
	snap, err := s.Store.Snapshot(t.Context())
	fatal(t, err)
	list, err := snap.Items(t.Context(), "", 10000)
	fatal(t, err)
	for _, i := range list {
		keys = append(keys, i.Key)
	}
	return keys
}
