package web_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"testing"
	"time"

	"portcullis/api"
	"portcullis/api/audit"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/api/web/webtest"
)

// issuer issues receipts without a signature, and records them as the real one does.
type issuer struct {
	api.ReceiptLog // no page asks for it
	store          *store.Store
	asked          chan v1.ReceiptRequest
}

func (i issuer) Issue(ctx context.Context, actor string, q v1.ReceiptRequest) ([]byte, error) {
	i.asked <- q
	if q.Membership {
		return nil, refusal.New(refusal.Conflict, "verify_running", "ask again", "the fabric is being read")
	}
	_, err := i.store.Update(ctx, func(tx *store.Tx) error {
		return audit.Append(ctx, tx, audit.Entry{
			Time: time.Now(), Actor: actor, Action: "receipt.issue", Object: "tenant/" + q.Tenant, Detail: "verdict leaks, tables 00, counts until tomorrow, key 00",
		})
	})
	return signed(q), err
}

func signed(q v1.ReceiptRequest) []byte {
	payload := fmt.Sprintf(`{"predicate":{"issued":{"at":"2026-03-01T12:00:00Z","max_age_seconds":%d},"verdict":"leaks","reading":{"at":"2026-03-01T11:59:00Z"}}}`, q.MaxAgeSeconds)
	return fmt.Appendf(nil, `{"payload":%q}`+"\n", base64.StdEncoding.EncodeToString([]byte(payload)))
}

func (issuer) Keys(context.Context) (*v1.ReceiptKeys, error) {
	return nil, errors.New("no page asks for that")
}

func (issuer) Rotate(context.Context, string, v1.ReceiptRotation) (*v1.ReceiptKeys, error) {
	return nil, errors.New("no page asks for that")
}

// TestReceipt: the page of a cluster has a receipt about its tenant issued, hands out the bytes as they came, and shows the last
// verdict. A role that gets no receipt reads why.
func TestReceipt(t *testing.T) {
	t.Parallel()
	asked := make(chan v1.ReceiptRequest, 4)
	site, server := served(t, func(o *api.Options) { o.Receipts = issuer{store: o.Audit.(audit.Book).Store, asked: asked} }, "h1")
	site.Join("h1")
	p := webtest.Open(t, server.URL+"/ui/#/clusters/train", "/v1/receipts")
	file := p.Downloads()
	p.SignIn(server.Viewer)
	p.AwaitText("The audit log has no receipt of this tenant")
	p.Click(`form[aria-label=Receipt] button`)
	p.AwaitText("token vic has the role viewer, which may not do this")

	p.Click(`#who button`)
	p.SignIn(server.Operator)
	p.AwaitText("Proof and receipt")
	p.Click(`form[aria-label=Receipt] input`)
	p.Click(`form[aria-label=Receipt] button`)
	p.AwaitText("the fabric is being read")
	if q := <-asked; q != (v1.ReceiptRequest{Tenant: "acme", Membership: true, MaxAgeSeconds: 86400}) {
		t.Errorf("the page asked for %+v", q)
	}
	p.Click(`form[aria-label=Receipt] input`)
	p.Click(`form[aria-label=Receipt] button`)
	want := v1.ReceiptRequest{Tenant: "acme", MaxAgeSeconds: 86400}
	if q := <-asked; q != want {
		t.Errorf("the page asked for %+v, want %+v", q, want)
	}
	if got := file("receipt-acme-20260301T120000Z.json"); string(got) != string(signed(want)) {
		t.Errorf("the file has %q, want the receipt as it was issued", got)
	}
	p.AwaitText("This page does not verify the signature")
	p.AwaitText("olga") // for which the last one was issued
	p.Await(`document.querySelectorAll('.badge.bad').length === 2`)
	p.Look("receipt")
	p.Quiet()
}
