package api

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"portcullis/api/problem"
	"portcullis/api/sse"
	v1 "portcullis/api/v1"
)

// FabricReader answers what operators ask of the fabric, out of the subnet
// manager's own memory. Package api/fabric/query implements it. Errors are as
// those of Backend.
type FabricReader interface {
	Overview(ctx context.Context) (*v1.Overview, error)
	Nodes(ctx context.Context, q v1.NodeQuery) (*v1.Page[v1.FabricNode], error)
	Ports(ctx context.Context, q v1.PortQuery) (*v1.Page[v1.FabricPort], error)
	Links(ctx context.Context, q v1.LinkQuery) (*v1.Page[v1.FabricLink], error)
	// Load lists what the links of switches carried lately.
	Load(ctx context.Context, q v1.LoadQuery) (*v1.Page[v1.FabricLoad], error)
	// Routes names end ports by GUID, LID, NODE or NODE/PORT.
	Routes(ctx context.Context, from, to string) (*v1.FabricRoutes, error)
	// Health lists places that are unhealthy or marked.
	Health(ctx context.Context, q v1.PageQuery) (*v1.Page[v1.FabricHealth], error)
	// Keys says how the keys of devices stand, and DeviceKeys of each. Neither shows a key.
	Keys(ctx context.Context) (*v1.FabricKeys, error)
	DeviceKeys(ctx context.Context, q v1.PageQuery) (*v1.Page[v1.FabricKey], error)
	// Violations lists what was reported of wrong keys and forged traps.
	Violations(ctx context.Context, q v1.ViolationQuery) (*v1.Page[v1.FabricViolation], error)
	RegisteredReader
	// Differing lists where the fabric is not as the declared topology has it.
	Differing(ctx context.Context, q v1.PageQuery) (*v1.Page[v1.TopospecPort], error)
	Tables(ctx context.Context, q v1.PageQuery) (*v1.Page[v1.FabricTable], error)
	Table(ctx context.Context, node string, q v1.PageQuery) (*v1.Page[v1.FabricEntry], error)
	// Dump returns a function that writes the fabric in a format, to be called once.
	Dump(format, node string) (func(io.Writer) error, error)
	// Devices returns a function that writes the metrics of all devices, to be called once.
	Devices() (func(io.Writer) error, error)
	Progress(ctx context.Context) (*v1.SMProgress, error)
	SM(ctx context.Context) (*v1.SM, error)
}

type bodyOutput[T any] struct{ Body *T }

type nodesInput struct{ v1.NodeQuery }

type portsInput struct{ v1.PortQuery }

type linksInput struct{ v1.LinkQuery }

type loadInput struct{ v1.LoadQuery }

type pageInput struct{ v1.PageQuery }

type violationsInput struct{ v1.ViolationQuery }

type routesInput struct {
	From string `query:"from" required:"true" maxLength:"128" doc:"end port: GUID, LID, NODE or NODE/PORT"`
	To   string `query:"to" required:"true" maxLength:"128" doc:"end port: GUID, LID, NODE or NODE/PORT"`
}

type tableInput struct {
	ID string `path:"id" maxLength:"128" doc:"switch: GUID, description or LID"`
	v1.PageQuery
}

type dumpInput struct {
	Name string `path:"name" maxLength:"64" doc:"ibnetdiscover, opensm-subnet-lst, opensm-lfts, opensm-fdbs, opensm-mcfdbs, guid2lid, ibdmchk-path-sl or ibdmchk-sl2vl"`
	Node string `query:"switch" maxLength:"128" doc:"opensm-lfts of this switch only"`
}

// read registers an operation that the fabric reader answers.
func read[I, T any](s *Server, a huma.API, id, path, summary string, answer func(FabricReader, context.Context, *I) (*T, error)) {
	register(s, a, operation{
		id: id, method: http.MethodGet, path: path, tag: "fabric", summary: summary, access: accessView, leader: true,
	}, func(ctx context.Context, in *I) (*bodyOutput[T], error) {
		r, err := s.reader()
		if err != nil {
			return nil, err
		}
		body, err := answer(r, ctx, in)
		return &bodyOutput[T]{body}, err
	})
}

// reader returns the reader of the fabric, which only the process with the sm role has.
func (s *Server) reader() (FabricReader, error) {
	if s.fabric == nil {
		return nil, problem.New(http.StatusServiceUnavailable, v1.CodeSMElsewhere,
			"the subnet manager runs in another process, and the fabric is seen there",
			"ask on the host of that process: portcullis fabric ... --socket PATH, with the path in fabric.watch.socket")
	}
	return s.fabric, nil
}

func (s *Server) seenRoutes(a huma.API) {
	read(s, a, "get-overview", "/v1/fabric/overview", "Count nodes, ports and links, and list what is wrong",
		func(r FabricReader, ctx context.Context, _ *struct{}) (*v1.Overview, error) { return r.Overview(ctx) })
	read(s, a, "list-nodes", "/v1/fabric/nodes", "List nodes by GUID, a page at a time",
		func(r FabricReader, ctx context.Context, in *nodesInput) (*v1.Page[v1.FabricNode], error) {
			return r.Nodes(ctx, in.NodeQuery)
		})
	read(s, a, "list-ports", "/v1/fabric/ports", "List ports by node GUID and number, a page at a time",
		func(r FabricReader, ctx context.Context, in *portsInput) (*v1.Page[v1.FabricPort], error) {
			return r.Ports(ctx, in.PortQuery)
		})
	read(s, a, "list-links", "/v1/fabric/links", "List cables with both ends, a page at a time",
		func(r FabricReader, ctx context.Context, in *linksInput) (*v1.Page[v1.FabricLink], error) {
			return r.Links(ctx, in.LinkQuery)
		})
	read(s, a, "list-load", "/v1/fabric/load", "List the links of switches with what they carried lately, as a share of what they can, a page at a time",
		func(r FabricReader, ctx context.Context, in *loadInput) (*v1.Page[v1.FabricLoad], error) {
			return r.Load(ctx, in.LoadQuery)
		})
	read(s, a, "get-routes", "/v1/fabric/routes", "Show how packets get from one end port to another and back",
		func(r FabricReader, ctx context.Context, in *routesInput) (*v1.FabricRoutes, error) {
			return r.Routes(ctx, in.From, in.To)
		})
	read(s, a, "list-tables", "/v1/fabric/lfts", "List switches with their forwarding tables in short",
		func(r FabricReader, ctx context.Context, in *pageInput) (*v1.Page[v1.FabricTable], error) {
			return r.Tables(ctx, in.PageQuery)
		})
	read(s, a, "get-table", "/v1/fabric/lfts/{id}", "List the entries of a switch's forwarding table by LID",
		func(r FabricReader, ctx context.Context, in *tableInput) (*v1.Page[v1.FabricEntry], error) {
			return r.Table(ctx, in.ID, in.PageQuery)
		})
	read(s, a, "get-progress", "/v1/sm/progress", "Show how far the subnet manager is, and what happened last",
		func(r FabricReader, ctx context.Context, _ *struct{}) (*v1.SMProgress, error) { return r.Progress(ctx) })
	read(s, a, "list-violations", "/v1/fabric/violations", "List what was reported of wrong keys and forged traps, with who did it, a page at a time",
		func(r FabricReader, ctx context.Context, in *violationsInput) (*v1.Page[v1.FabricViolation], error) {
			return r.Violations(ctx, in.ViolationQuery)
		})
	read(s, a, "list-differing", "/v1/fabric/topology", "List switch ports at which the fabric is not as declared, a page at a time",
		func(r FabricReader, ctx context.Context, in *pageInput) (*v1.Page[v1.TopospecPort], error) {
			return r.Differing(ctx, in.PageQuery)
		})
	s.healthRoutes(a)
	s.keyRoutes(a)
	s.registeredRoutes(a)
	s.dumpRoute(a)
}

// dumpRoute registers the dumps, which are text and of any length.
func (s *Server) dumpRoute(a huma.API) {
	op := s.describe(a, operation{
		id: "dump-fabric", method: http.MethodGet, path: "/v1/fabric/dumps/{name}", tag: "fabric",
		summary: "Write the fabric as a file for other tools", access: accessView, leader: true, maxBody: maxBody,
	})
	op.Responses["200"] = &huma.Response{
		Description: "The file", Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: "string"}}},
	}
	huma.Register(a, op, func(ctx context.Context, in *dumpInput) (*huma.StreamResponse, error) {
		write, err := s.dump(in)
		if err != nil {
			p, fault := problem.Of(err)
			noteFault(ctx, fault)
			return nil, p
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			_, w := humachi.Unwrap(c)
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			if err := write(&paced{ctx: ctx, w: w, rc: http.NewResponseController(w)}); err != nil && ctx.Err() == nil {
				noteFault(ctx, fmt.Errorf("dump %s: %w", in.Name, err))
				panic(http.ErrAbortHandler) // so that a part is not taken for the whole
			}
		}}, nil
	})
}

func (s *Server) dump(in *dumpInput) (func(io.Writer) error, error) {
	r, err := s.reader()
	if err != nil {
		return nil, err
	}
	return r.Dump(in.Name, in.Node)
}

// paced extends the time of the reader of a long answer for each part of it.
type paced struct {
	ctx context.Context
	w   io.Writer
	rc  *http.ResponseController
}

// Write implements io.Writer.
func (p *paced) Write(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	if err := p.rc.SetWriteDeadline(time.Now().Add(sse.Patience)); err != nil {
		return 0, err
	}
	return p.w.Write(b)
}
