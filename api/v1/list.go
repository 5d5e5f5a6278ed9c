package v1

// List is the answer of every route that lists, or a page of it. Items are sorted by their name, unless the route says
// otherwise, and never null. Next, when it is not empty, goes into the query for the page that follows. Pages may come from
// different moments; an item that did not change between them is in exactly one.
type List[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"value of after for the next page; absent: this is the last one"`
}

// InventoryUpload carries inventory and cabling files as they are. They are
// taken together: all or nothing.
type InventoryUpload struct {
	Files []InventoryFile `json:"files" minItems:"1" maxItems:"256" nullable:"false"`
	RepairTicket
}

// InventoryFile is one file. Name is what messages call it.
type InventoryFile struct {
	Name      string `json:"name" minLength:"1" maxLength:"255"`
	Content   string `json:"content" doc:"text of the file as it is"`
	Form      string `json:"form,omitempty" enum:"yaml,manifest,csv,ibnetdiscover,topoconf,ndt,guids,ufm,netbox" doc:"none: yaml"`
	Signature []byte `json:"signature,omitempty" maxLength:"1400" doc:"of a manifest, over its text: Ed25519, or ECDSA P-256 with SHA-256 in ASN.1 DER"`
}
