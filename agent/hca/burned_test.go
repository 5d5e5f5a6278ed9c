package hca_test

import (
	"slices"
	"testing"

	"portcullis/agent/hca/hcasim"
	"portcullis/agent/hca/register"
)

// TestBurnedGUID: the base GUID of manufacture is read by registers alone, and a
// node GUID that is another speaks against the adapter.
func TestBurnedGUID(t *testing.T) {
	t.Parallel()
	const differs = "guid-not-of-maker node_guid"
	d := readCard(t, newCard(t))
	if got := value(t, &d.BaseGUID); got != guid {
		t.Errorf("base GUID %v, want %v", got, guid)
	}
	if v := d.Judge(goodSite()); slices.Contains(all(v), differs) {
		t.Errorf("an honest card: %v", all(v))
	}
	other := newCard(t, func(o *hcasim.Options) { o.Identity.BaseGUID = guid + 1 })
	if v := readCard(t, other).Judge(goodSite()); !slices.Contains(all(v), differs) {
		t.Errorf("another node GUID than that of manufacture: %v", all(v))
	}
	silent := newCard(t)
	silent.Inject(hcasim.Fault{Kind: hcasim.Lying, ID: register.IDMNVDA, Method: register.Read, Lie: func(b []byte) { b[7]++ }})
	d = readCard(t, silent)
	if got, ok := d.BaseGUID.Value(); ok {
		t.Errorf("base GUID %v out of an answer about something else", got)
	}
}
