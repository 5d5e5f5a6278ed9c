package v1

// Labels are the labels of a host, cluster or tenant.
type Labels struct {
	Labels  map[string]string `json:"labels" nullable:"false" doc:"values by key"`
	Version string            `json:"version" doc:"for If-Match: names these labels of this object"`
}

// LabelPatch is a JSON merge patch (RFC 7396) of Labels: a value sets the label of its key, null removes it.
type LabelPatch struct {
	Labels map[string]*string `json:"labels"`
}

// SelectorQuery chooses objects by their labels.
type SelectorQuery struct {
	Selector string `query:"selector" maxLength:"1024" doc:"objects whose labels meet all of these only: a=b, a!=b, a in (x,y), a notin (x,y), a, !a; separated by commas. A cursor is good for the selector of its page alone"`
}

// TenantQuery says which tenants are asked for. Empty fields ask for all.
type TenantQuery struct {
	SelectorQuery
	PageQuery
}
