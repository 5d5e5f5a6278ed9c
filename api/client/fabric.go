package client

import (
	"bufio"
	"context"
	"io"
	"iter"

	v1 "portcullis/api/v1"
)

// Fabric asks about the fabric as the subnet manager sees it.
type Fabric struct{ c *Client }

// Fabric returns the operations about the fabric as the subnet manager sees it.
func (c *Client) Fabric() Fabric { return Fabric{c} }

// Get returns the fabric.
func (g Fabric) Get(ctx context.Context) (*v1.Fabric, error) {
	return ask[v1.Fabric](ctx, g.c, getFabric, nil)
}

// Overview counts what the subnet manager sees.
func (g Fabric) Overview(ctx context.Context) (*v1.Overview, error) {
	return ask[v1.Overview](ctx, g.c, getOverview, nil)
}

// MarkHealth says what the operator thinks of the health of a place.
func (g Fabric) MarkHealth(ctx context.Context, in v1.HealthMark) (*v1.FabricHealth, error) {
	return ask[v1.FabricHealth](ctx, g.c, markHealth, in)
}

// Nodes returns nodes in the order of their GUIDs, page by page. The sequence ends after the first error.
func (g Fabric) Nodes(ctx context.Context, q v1.NodeQuery) iter.Seq2[*v1.Page[v1.FabricNode], error] {
	v := query{}
	v.set("type", q.Type)
	v.set("host", q.Host)
	v.flag("problem", q.Problem)
	return pages[v1.FabricNode](ctx, g.c, listNodes, v.page(q.PageQuery))
}

// Ports returns ports by node GUID and number, page by page.
func (g Fabric) Ports(ctx context.Context, q v1.PortQuery) iter.Seq2[*v1.Page[v1.FabricPort], error] {
	v := query{}
	v.set("state", q.State)
	v.set("host", q.Host)
	v.set("switch", q.Switch)
	v.set("node", q.Node)
	v.set("type", q.Type)
	v.flag("problem", q.Problem)
	return pages[v1.FabricPort](ctx, g.c, listPorts, v.page(q.PageQuery))
}

// Links returns cables, page by page.
func (g Fabric) Links(ctx context.Context, q v1.LinkQuery) iter.Seq2[*v1.Page[v1.FabricLink], error] {
	v := query{}
	v.set("node", q.Node)
	v.flag("trunks", q.Trunks)
	v.flag("degraded", q.Degraded)
	v.flag("problem", q.Problem)
	return pages[v1.FabricLink](ctx, g.c, listLinks, v.page(q.PageQuery))
}

// Load returns links of switches with what they carried lately, page by page.
func (g Fabric) Load(ctx context.Context, q v1.LoadQuery) iter.Seq2[*v1.Page[v1.FabricLoad], error] {
	v := query{}
	v.set("node", q.Node)
	v.flag("trunks", q.Trunks)
	return pages[v1.FabricLoad](ctx, g.c, listLoad, v.page(q.PageQuery))
}

// Health returns places that are unhealthy or marked, page by page.
func (g Fabric) Health(ctx context.Context, q v1.PageQuery) iter.Seq2[*v1.Page[v1.FabricHealth], error] {
	return pages[v1.FabricHealth](ctx, g.c, listHealth, query{}.page(q))
}

// Violations returns the reports of wrong keys and forged traps, page by page.
func (g Fabric) Violations(ctx context.Context, q v1.ViolationQuery) iter.Seq2[*v1.Page[v1.FabricViolation], error] {
	v := query{}
	v.set("kind", q.Kind)
	v.set("verdict", q.Verdict)
	v.set("host", q.Host)
	v.set("tenant", q.Tenant)
	v.flag("all", q.All)
	return pages[v1.FabricViolation](ctx, g.c, listViolations, v.page(q.PageQuery))
}

// Differing returns where the fabric is not as the declared topology has it, page by page.
func (g Fabric) Differing(ctx context.Context, q v1.PageQuery) iter.Seq2[*v1.Page[v1.TopospecPort], error] {
	return pages[v1.TopospecPort](ctx, g.c, listDiffering, query{}.page(q))
}

// Tables returns switches with their forwarding tables in short, page by page.
func (g Fabric) Tables(ctx context.Context, q v1.PageQuery) iter.Seq2[*v1.Page[v1.FabricTable], error] {
	return pages[v1.FabricTable](ctx, g.c, listTables, query{}.page(q))
}

// Table returns the entries of a switch's forwarding table, page by page.
func (g Fabric) Table(ctx context.Context, node string, q v1.PageQuery) iter.Seq2[*v1.Page[v1.FabricEntry], error] {
	return pages[v1.FabricEntry](ctx, g.c, listTable, query{}.page(q), node)
}

// Routes returns how packets get from one end port to another and back.
func (g Fabric) Routes(ctx context.Context, from, to string) (*v1.FabricRoutes, error) {
	v := query{}
	v.set("from", from)
	v.set("to", to)
	return find[v1.FabricRoutes](ctx, g.c, getRoutes, nil, v)
}

// Dump writes the fabric in a format, see GET /v1/fabric/dumps/{name}. It may
// take as long as ctx allows. After an error w may hold a part of the dump.
func (g Fabric) Dump(ctx context.Context, w io.Writer, format, node string) error {
	v := query{}
	v.set("switch", node)
	b := bufio.NewWriterSize(w, 1<<16)
	if err := save(ctx, g.c, b, "dump", dumpFabric, v, format); err != nil {
		return err
	}
	return b.Flush()
}
