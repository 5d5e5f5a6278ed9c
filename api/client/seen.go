package client

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"

	v1 "portcullis/api/v1"
)

// Overview counts what the subnet manager sees.
func (c *Client) Overview(ctx context.Context) (*v1.Overview, error) {
	var out v1.Overview
	return answer(&out, c.get(ctx, "/v1/fabric/overview", &out))
}

// Nodes returns nodes in the order of their GUIDs, page by page. The sequence ends after the first error.
func (c *Client) Nodes(ctx context.Context, q v1.NodeQuery) iter.Seq2[*v1.Page[v1.FabricNode], error] {
	v := query{}
	v.set("type", q.Type)
	v.set("host", q.Host)
	v.flag("problem", q.Problem)
	return pages[v1.FabricNode](ctx, c, "/v1/fabric/nodes", v.page(q.PageQuery))
}

// Ports returns ports by node GUID and number, page by page.
func (c *Client) Ports(ctx context.Context, q v1.PortQuery) iter.Seq2[*v1.Page[v1.FabricPort], error] {
	v := query{}
	v.set("state", q.State)
	v.set("host", q.Host)
	v.set("switch", q.Switch)
	v.set("node", q.Node)
	v.set("type", q.Type)
	v.flag("problem", q.Problem)
	return pages[v1.FabricPort](ctx, c, "/v1/fabric/ports", v.page(q.PageQuery))
}

// Links returns cables, page by page.
func (c *Client) Links(ctx context.Context, q v1.LinkQuery) iter.Seq2[*v1.Page[v1.FabricLink], error] {
	v := query{}
	v.set("node", q.Node)
	v.flag("trunks", q.Trunks)
	v.flag("degraded", q.Degraded)
	v.flag("problem", q.Problem)
	return pages[v1.FabricLink](ctx, c, "/v1/fabric/links", v.page(q.PageQuery))
}

// Health returns places that are unhealthy or marked, page by page.
func (c *Client) Health(ctx context.Context, q v1.PageQuery) iter.Seq2[*v1.Page[v1.FabricHealth], error] {
	return pages[v1.FabricHealth](ctx, c, "/v1/fabric/health", query{}.page(q))
}

// Violations returns the reports of wrong keys and forged traps, page by page.
func (c *Client) Violations(ctx context.Context, q v1.ViolationQuery) iter.Seq2[*v1.Page[v1.FabricViolation], error] {
	v := query{}
	v.set("kind", q.Kind)
	v.set("verdict", q.Verdict)
	v.set("host", q.Host)
	v.set("tenant", q.Tenant)
	v.flag("all", q.All)
	return pages[v1.FabricViolation](ctx, c, "/v1/fabric/violations", v.page(q.PageQuery))
}

// Differing returns where the fabric is not as the declared topology has it, page by page.
func (c *Client) Differing(ctx context.Context, q v1.PageQuery) iter.Seq2[*v1.Page[v1.TopospecPort], error] {
	return pages[v1.TopospecPort](ctx, c, "/v1/fabric/topology", query{}.page(q))
}

// MarkHealth says what the operator thinks of the health of a place.
func (c *Client) MarkHealth(ctx context.Context, m v1.HealthMark) (*v1.FabricHealth, error) {
	var out v1.FabricHealth
	return answer(&out, c.post(ctx, "/v1/fabric/health", m, &out))
}

// Keys says how the keys of devices stand.
func (c *Client) Keys(ctx context.Context) (*v1.FabricKeys, error) {
	var out v1.FabricKeys
	return answer(&out, c.get(ctx, "/v1/fabric/keys", &out))
}

// DeviceKeys returns end ports with the state and age of their keys, page by page.
func (c *Client) DeviceKeys(ctx context.Context, q v1.PageQuery) iter.Seq2[*v1.Page[v1.FabricKey], error] {
	return pages[v1.FabricKey](ctx, c, "/v1/fabric/keys/devices", query{}.page(q))
}

// ReleaseKeys begins to make all devices return their keys, or to issue keys again.
func (c *Client) ReleaseKeys(ctx context.Context, r v1.KeyRelease) (*v1.FabricKeys, error) {
	var out v1.FabricKeys
	return answer(&out, c.post(ctx, "/v1/fabric/keys/release", r, &out))
}

// MoveKey has a device use its key at another place.
func (c *Client) MoveKey(ctx context.Context, m v1.KeyMove) (*v1.FabricKey, error) {
	var out v1.FabricKey
	return answer(&out, c.post(ctx, "/v1/fabric/keys/move", m, &out))
}

// SealedKeys returns what the service stores about keys, as it is sealed.
func (c *Client) SealedKeys(ctx context.Context) (*v1.SealedKeys, error) {
	var out v1.SealedKeys
	return answer(&out, c.post(ctx, "/v1/fabric/keys/sealed", nil, &out))
}

// Tables returns switches with their forwarding tables in short, page by page.
func (c *Client) Tables(ctx context.Context, q v1.PageQuery) iter.Seq2[*v1.Page[v1.FabricTable], error] {
	return pages[v1.FabricTable](ctx, c, "/v1/fabric/lfts", query{}.page(q))
}

// Table returns the entries of a switch's forwarding table, page by page.
func (c *Client) Table(ctx context.Context, node string, q v1.PageQuery) iter.Seq2[*v1.Page[v1.FabricEntry], error] {
	return pages[v1.FabricEntry](ctx, c, "/v1/fabric/lfts/"+url.PathEscape(node), query{}.page(q))
}

// Routes returns how packets get from one end port to another and back.
func (c *Client) Routes(ctx context.Context, from, to string) (*v1.FabricRoutes, error) {
	v := query{}
	v.set("from", from)
	v.set("to", to)
	var out v1.FabricRoutes
	return answer(&out, c.get(ctx, "/v1/fabric/routes"+v.String(), &out))
}

// Progress returns how far the subnet manager is.
func (c *Client) Progress(ctx context.Context) (*v1.SMProgress, error) {
	var out v1.SMProgress
	return answer(&out, c.get(ctx, "/v1/sm/progress", &out))
}

// Dump writes the fabric in a format, see GET /v1/fabric/dumps/{name}. It may
// take as long as ctx allows. After an error w may hold a part of the dump.
func (c *Client) Dump(ctx context.Context, w io.Writer, format, node string) error {
	v := query{}
	v.set("switch", node)
	resp, err := c.send(ctx, c.http, http.MethodGet, "/v1/fabric/dumps/"+url.PathEscape(format)+v.String())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b := bufio.NewWriterSize(w, 1<<16)
	if _, err := io.Copy(b, resp.Body); err != nil {
		return fmt.Errorf("read the dump: %w", err)
	}
	return b.Flush()
}

// local returns a client for a unix socket.
func local(o Options) *Client {
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", o.Socket)
	}
	return &Client{
		base: "http://" + localHost, socket: o.Socket, userAgent: o.UserAgent, timeout: o.Timeout,
		http: &http.Client{Transport: &http.Transport{DialContext: dial}, CheckRedirect: refuseRedirect},
	}
}

// localHost stands where a host would in requests over a socket.
const localHost = "localhost"

// asked names the server that gets the requests, for errors.
func (c *Client) asked() string {
	if c.socket != "" {
		return "the subnet manager at " + c.socket
	}
	return "the service at " + c.base
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

// pages asks for page after page.
func pages[T any](ctx context.Context, c *Client, path string, q query) iter.Seq2[*v1.Page[T], error] {
	return func(yield func(*v1.Page[T], error) bool) {
		for {
			var page v1.Page[T]
			if err := c.get(ctx, path+q.String(), &page); err != nil {
				yield(nil, err)
				return
			}
			if !yield(&page, nil) || page.Next == "" {
				return
			}
			q.set("after", page.Next)
		}
	}
}

// all gathers the items of page after page.
func all[T any](ctx context.Context, c *Client, path string, q query) ([]T, error) {
	items := []T{}
	for {
		var page v1.List[T]
		if err := c.get(ctx, path+q.String(), &page); err != nil {
			return nil, err
		}
		items = append(items, page.Items...)
		if page.Next == "" {
			return items, nil
		}
		q.set("after", page.Next)
	}
}
