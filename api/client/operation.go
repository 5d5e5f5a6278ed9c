package client

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	v1 "portcullis/api/v1"
)

// operation is one of the service's operations: its method and the path with its operands, as the OpenAPI document has
// them. operations.go lists them.
type operation string

// method returns the method of the request.
func (o operation) method() string {
	method, _, _ := strings.Cut(string(o), " ")
	return method
}

// path returns the path with the operands in place.
func (o operation) path(operands []string) string {
	_, path, _ := strings.Cut(string(o), " ")
	for _, operand := range operands {
		before, rest, _ := strings.Cut(path, "{")
		_, after, _ := strings.Cut(rest, "}")
		path = before + url.PathEscape(operand) + after
	}
	return path
}

// do has the service do an operation whose answer has no body.
func do(ctx context.Context, c *Client, o operation, in any, operands ...string) error {
	return c.call(ctx, c.http, o.method(), o.path(operands), in, nil)
}

// ask has the service do an operation, and returns what it answers. in is the body; nil: none.
func ask[Out any](ctx context.Context, c *Client, o operation, in any, operands ...string) (*Out, error) {
	return find[Out](ctx, c, o, in, nil, operands...)
}

// find is ask with a query.
func find[Out any](ctx context.Context, c *Client, o operation, in any, q query, operands ...string) (*Out, error) {
	var out Out
	return answer(&out, c.call(ctx, c.http, o.method(), o.path(operands)+q.String(), in, &out))
}

// answer returns nil instead of a half-filled value beside an error.
func answer[T any](v *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// pages asks for page after page.
func pages[T any](ctx context.Context, c *Client, o operation, q query, operands ...string) iter.Seq2[*v1.Page[T], error] {
	return func(yield func(*v1.Page[T], error) bool) {
		for {
			page, err := find[v1.Page[T]](ctx, c, o, nil, q, operands...)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(page, nil) || page.Next == "" {
				return
			}
			q.set("after", page.Next)
		}
	}
}

// all gathers the items of page after page.
func all[T any](ctx context.Context, c *Client, o operation, q query) ([]T, error) {
	items := []T{}
	for {
		page, err := find[v1.List[T]](ctx, c, o, nil, q)
		if err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if page.Next == "" {
			return items, nil
		}
		q.set("after", page.Next)
	}
}

// open has the service do an operation, and returns its answer as a stream. It may take as long as ctx allows.
func open(ctx context.Context, c *Client, o operation, q query, operands ...string) (*http.Response, error) {
	return c.send(ctx, c.http, o.method(), o.path(operands)+q.String())
}

// save writes the answer of an operation to w, and names it in errors. After an error w may hold a part of it.
func save(ctx context.Context, c *Client, w io.Writer, name string, o operation, q query, operands ...string) error {
	resp, err := open(ctx, c, o, q, operands...)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("read the %s: %w", name, err)
	}
	return nil
}

// query is the query of a URL.
type query url.Values

func (q query) set(name, value string) {
	if value != "" {
		url.Values(q).Set(name, value)
	}
}

func (q query) flag(name string, on bool) {
	if on {
		q.set(name, "true")
	}
}

func (q query) page(p v1.PageQuery) query {
	q.set("after", p.After)
	if p.Limit > 0 {
		q.set("limit", strconv.Itoa(p.Limit))
	}
	return q
}

// String returns the query with its question mark, or nothing.
func (q query) String() string {
	if len(q) == 0 {
		return ""
	}
	return "?" + url.Values(q).Encode()
}
