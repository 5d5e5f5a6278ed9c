package otlp

import (
	"context"
	"crypto/sha256"
	"encoding/binary"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	otel "go.opentelemetry.io/otel/trace"

	"portcullis/api/trace"
	"portcullis/api/tracecontext"
)

// scope names what made the spans.
const scope = "portcullis/api/trace"

// Export puts a trace into the queue, unless it is not sampled, and returns its id, 32 hexadecimal digits. One whose parent an
// operator sent is sampled if the parent is. It does not wait.
func (e *Exporter) Export(ctx context.Context, t *trace.Trace) string {
	id := otel.TraceID(t.ID)
	if parent := contextOf(t.Parent); parent.IsValid() {
		id = parent.TraceID()
		ctx = otel.ContextWithRemoteSpanContext(ctx, parent)
	} else {
		ctx = otel.ContextWithSpanContext(ctx, otel.SpanContext{}) // none of the caller's
	}
	ctx = context.WithValue(ctx, idsKey{}, &ids{of: t.ID, trace: id})
	e.span(ctx, &t.Root, t.Link)
	return id.String()
}

// span makes a span and those below it.
func (e *Exporter) span(ctx context.Context, s *trace.Span, link tracecontext.Parent) {
	kind := otel.WithSpanKind(otel.SpanKindInternal)
	o := []otel.SpanStartOption{kind, otel.WithTimestamp(s.Start), otel.WithAttributes(attributes(s.Attributes)...)}
	if to := contextOf(link); to.IsValid() {
		o = append(o, otel.WithLinks(otel.Link{SpanContext: to, Attributes: []attribute.KeyValue{attribute.String("portcullis.link", "host")}}))
	}
	ctx, span := e.provider.Tracer(scope).Start(ctx, s.Name, o...)
	for i := range s.Events {
		ev := &s.Events[i]
		span.AddEvent(ev.Name, otel.WithTimestamp(ev.Time), otel.WithAttributes(attributes(ev.Attributes)...))
	}
	if s.Failed != "" {
		span.SetStatus(codes.Error, s.Failed)
	}
	for i := range s.Children {
		e.span(ctx, &s.Children[i], tracecontext.Parent{})
	}
	span.End(otel.WithTimestamp(s.End))
}

func attributes(of []trace.Attribute) []attribute.KeyValue {
	out := make([]attribute.KeyValue, 0, len(of))
	for _, a := range of {
		if a.Text != "" {
			out = append(out, attribute.String(a.Key, a.Text))
		} else {
			out = append(out, attribute.Int64(a.Key, a.Number))
		}
	}
	return out
}

func contextOf(p tracecontext.Parent) otel.SpanContext {
	var flags otel.TraceFlags
	return otel.NewSpanContext(otel.SpanContextConfig{TraceID: p.Trace, SpanID: p.Span, TraceFlags: flags.WithSampled(p.Sampled), Remote: true})
}

type idsKey struct{}

// ids are those of one trace, which are the same in each instance.
type ids struct {
	of    [16]byte
	trace otel.TraceID
	n     uint64 // spans so far
}

// given assigns spans the ids of their context.
type given struct{}

func (g given) NewIDs(ctx context.Context) (otel.TraceID, otel.SpanID) {
	i := of(ctx)
	return i.trace, g.NewSpanID(ctx, i.trace)
}

func (given) NewSpanID(ctx context.Context, _ otel.TraceID) (id otel.SpanID) {
	i := of(ctx)
	i.n++
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(append([]byte("portcullis/span/1 "), i.of[:]...), i.n))
	copy(id[:], sum[:])
	return id
}

func of(ctx context.Context) *ids {
	i, _ := ctx.Value(idsKey{}).(*ids) // Export has put it there
	return i
}
