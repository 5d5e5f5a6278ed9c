// Package openapi is the OpenAPI document of the API but for its operations: what it says of itself, its tags and its
// credentials, and its two forms.
package openapi

import (
	"encoding/json"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// Document is the OpenAPI document. Each form is rendered once, for the first client that asks for it.
type Document struct{ JSON, YAML func() []byte }

// Serve answers with one form of the document.
func (d *Document) Serve(contentType string, body func() []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		// An error here means that the client is gone; there is no receiver for it.
		_, _ = w.Write(body())
	}
}

// New returns an empty document of the API. each is called with every operation that joins it.
func New(each ...huma.AddOpFunc) *huma.OpenAPI {
	return &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Portcullis", Version: "v1",
			Description: "Attests bare-metal hosts and admits their InfiniBand ports to partitions.",
			Contact:     &huma.Contact{Name: "Portcullis authors"},
			License:     &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Servers: []*huma.Server{{URL: "/", Description: "The instance that served this document."}},
		Components: &huma.Components{
			Schemas:         huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer),
			SecuritySchemes: securitySchemes(),
		},
		Tags:           tags(),
		OnAddOperation: each,
	}
}

// Render returns the document of o, whose operations are all there.
func Render(o *huma.OpenAPI) *Document {
	return &Document{
		JSON: rendered(func() ([]byte, error) { return json.MarshalIndent(o, "", "  ") }),
		YAML: rendered(o.YAML),
	}
}

// rendered renders once. It panics if that is impossible, which depends on the program alone.
func rendered(form func() ([]byte, error)) func() []byte {
	return sync.OnceValue(func() []byte {
		body, err := form()
		if err != nil {
			panic("openapi: " + err.Error())
		}
		return body
	})
}

func securitySchemes() map[string]*huma.SecurityScheme {
	return map[string]*huma.SecurityScheme{
		"operator": {Type: "http", Scheme: "bearer", Description: "An operator's token from the tokens file, or a JWT of an identity provider that the service accepts."},
		"machine":  {Type: "mutualTLS", Description: "The certificate of a machine: a SPIFFE ID or a DNS name that an authority of the configuration vouches for. No Authorization header goes with it."},
		"status":   {Type: "http", Scheme: "bearer", Description: "The status token that accepted evidence earned."},
		"host":     {Type: "mutualTLS", Description: "The certificate of the key that a host brought with its seal."},
	}
}

func tags() []*huma.Tag {
	return []*huma.Tag{
		{Name: "attestation", Description: "For hosts. Refusals are uniform; reasons are in the host's status."},
		{Name: "inventory", Description: "What exists and where it stands: sites, racks, switches, hosts, their HCAs, cables and stock."},
		{Name: "reference", Description: "Reference values of measured boots, by class of hosts."},
		{Name: "lock", Description: "Locks of adapters: epochs of their keys, and adapters that leave."},
		{Name: "results", Description: "Attestation results: signed tokens about hosts, for parties who trust the service."},
		{Name: "hosts", Description: "Where each host stands, and why it is not admitted."},
		{Name: "clock", Description: "The time that decisions rest on, which does not go back."},
		{Name: "credential", Description: "The credential of the caller."},
		{Name: "tenancy", Description: "Tenants, their clusters and the P_Keys of these."},
		{Name: "adoption", Description: "Memberships that the fabric had before, kept until their hosts attest."},
		{Name: "topospec", Description: "Revisions of the declared topology, from draft to rollback."},
		{Name: "audit", Description: "The log of all that was changed, refused and decided, chained entry by entry."},
		{Name: "backup", Description: "Backups of the store, encrypted to recipients whose identities are offline."},
		{Name: "event", Description: "What happened to locks and evidence without a request."},
		{Name: "fabric", Description: "What the subnet manager sees and does."},
	}
}
