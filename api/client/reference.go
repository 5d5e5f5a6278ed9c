package client

import (
	"context"
	"net/url"
	"strconv"

	v1 "portcullis/api/v1"
)

// References lists sets of reference values, of one class unless it is "".
func (c *Client) References(ctx context.Context, class string) (*v1.References, error) {
	var out v1.References
	path := "/v1/references"
	if class != "" {
		path += "?" + url.Values{"class": {class}}.Encode()
	}
	return answer(&out, c.get(ctx, path, &out))
}

// Reference returns one set.
func (c *Client) Reference(ctx context.Context, class string, version uint64) (*v1.Reference, error) {
	var out v1.Reference
	return answer(&out, c.get(ctx, referencePath(class, version, ""), &out))
}

// LearnReference has a draft made.
func (c *Client) LearnReference(ctx context.Context, in v1.NewReference) (*v1.Reference, error) {
	var out v1.Reference
	return answer(&out, c.post(ctx, "/v1/references", in, &out))
}

// WaiveReference has the draft of a waiver made.
func (c *Client) WaiveReference(ctx context.Context, in v1.NewWaiver) (*v1.Reference, error) {
	var out v1.Reference
	return answer(&out, c.post(ctx, "/v1/references/waivers", in, &out))
}

// ApproveReference puts a draft into force.
func (c *Client) ApproveReference(ctx context.Context, class string, version uint64, in v1.ReferenceApprove) (*v1.Reference, error) {
	var out v1.Reference
	return answer(&out, c.post(ctx, referencePath(class, version, "/approve"), in, &out))
}

// ExpireReference ends a set.
func (c *Client) ExpireReference(ctx context.Context, class string, version uint64, in v1.ReferenceExpire) (*v1.Reference, error) {
	var out v1.Reference
	return answer(&out, c.post(ctx, referencePath(class, version, "/expire"), in, &out))
}

// DiffReference compares a set with the last boot of a host.
func (c *Client) DiffReference(ctx context.Context, class string, version uint64, host string) (*v1.ReferenceDiff, error) {
	var out v1.ReferenceDiff
	return answer(&out, c.get(ctx, referencePath(class, version, "/diff?"+url.Values{"host": {host}}.Encode()), &out))
}

// DiffReferences compares a set with another version of its class.
func (c *Client) DiffReferences(ctx context.Context, class string, version, with uint64) (*v1.ReferenceDiff, error) {
	var out v1.ReferenceDiff
	return answer(&out, c.get(ctx, referencePath(class, version, "/diff?with="+strconv.FormatUint(with, 10)), &out))
}

func referencePath(class string, version uint64, verb string) string {
	return "/v1/references/" + url.PathEscape(class) + "/" + strconv.FormatUint(version, 10) + verb
}
