// Package otlp sends traces to a collector by OTLP over HTTP, with the SDK of OpenTelemetry. Callers never wait: what does not fit into
// the queue is dropped and counted.
package otlp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"portcullis/api/outgoing"
	"portcullis/fabricsm/ib"
)

const (
	queueSize  = 4096 // spans that wait
	batchSize  = 512  // spans of a request
	postLimit  = 10 * time.Second
	retryFor   = 30 * time.Second // of one batch
	lastChance = 2 * time.Second  // of what waits at the end
	dialLimit  = 5 * time.Second
	maxText    = 128 // of an attribute, in bytes
	maxFault   = 256 // of an error in the log, in bytes
)

// Options say where the collector is, and what of the traces it gets. URL, Log and Version are required.
type Options struct {
	URL      string // CheckURL: with its path, such as https://HOST:4318/v1/traces
	TLS      *tls.Config
	Headers  []Header
	Sample   float64 // share of the traces that no request began: 0 to 1
	Instance string  // name of this instance; "": it is the only one
	Version  string  // of the service
	Log      *slog.Logger
}

// Header is sent with each request, and may authenticate it.
type Header struct {
	Name  string
	Value ib.SecretText
}

// CheckURL refuses what is no URL of https, or of http at an address of this machine, with a path, and one with a password or a
// query in it.
func CheckURL(text string) error {
	u, fault := outgoing.Judge(text)
	switch {
	case fault == outgoing.Form || strings.Contains(text, "?"):
		return errors.New("want https://HOST:4318/v1/traces")
	case fault == outgoing.Password:
		return errors.New("a password in a URL gets into logs: name a file of headers, or a client certificate")
	case strings.Trim(u.Path, "/") == "":
		return errors.New("want the path, too: that of collectors is /v1/traces")
	case fault == outgoing.Plain:
		return errors.New("over http any host on the way could read it: want https, or an address of this machine such as http://127.0.0.1:4318/v1/traces")
	}
	return nil
}

// CheckSample refuses what is no share.
func CheckSample(share float64) error {
	if math.IsNaN(share) || share < 0 || share > 1 {
		return fmt.Errorf("%v: want 0 to 1", share)
	}
	return nil
}

// Counts are how many spans there were since the start.
type Counts struct {
	Exported uint64 // the collector has them
	Dropped  uint64 // the queue was full
	Failed   uint64 // the collector did not take them
}

// Exporter sends traces. Its methods are safe for concurrent use.
type Exporter struct {
	o        Options
	client   *otlptrace.Exporter
	provider *sdk.TracerProvider
	queue    chan sdk.ReadOnlySpan

	exported, dropped, failed atomic.Uint64
	failing                   bool // of Run
}

// New makes an Exporter. It connects to nothing. The error is that of CheckURL or CheckSample.
func New(o Options) (*Exporter, error) {
	if err := errors.Join(CheckURL(o.URL), CheckSample(o.Sample)); err != nil {
		return nil, err
	}
	e := &Exporter{o: o, queue: make(chan sdk.ReadOnlySpan, queueSize)}
	headers := map[string]string{}
	for _, h := range o.Headers {
		headers[h.Name] = h.Value.Reveal()
	}
	// It is not started: that does nothing over HTTP but measure the exporter itself.
	e.client = otlptrace.NewUnstarted(otlptracehttp.NewClient(
		otlptracehttp.WithEndpointURL(o.URL), otlptracehttp.WithHTTPClient(newClient(o.TLS)), otlptracehttp.WithHeaders(headers),
		otlptracehttp.WithCompression(otlptracehttp.GzipCompression), otlptracehttp.WithTimeout(postLimit),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: 10 * time.Second, MaxElapsedTime: retryFor}),
	))
	about := []attribute.KeyValue{attribute.String("service.name", "portcullisd"), attribute.String("service.version", o.Version)}
	if o.Instance != "" {
		about = append(about, attribute.String("service.instance.id", o.Instance))
	}
	e.provider = sdk.NewTracerProvider(
		sdk.WithSpanProcessor(processor{e}), sdk.WithIDGenerator(given{}), sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(o.Sample))),
		sdk.WithResource(resource.NewSchemaless(about...)),
		sdk.WithRawSpanLimits(sdk.SpanLimits{
			AttributeValueLengthLimit: maxText, AttributeCountLimit: 32, EventCountLimit: 16, LinkCountLimit: 1,
			AttributePerEventCountLimit: 8, AttributePerLinkCountLimit: 8,
		}),
	)
	return e, nil
}

// newClient returns a client that uses no proxy.
func newClient(conf *tls.Config) *http.Client {
	dialer := &net.Dialer{Timeout: dialLimit}
	return outgoing.Client(&http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: conf, ForceAttemptHTTP2: true, MaxIdleConns: 1, IdleConnTimeout: 30 * time.Second, TLSHandshakeTimeout: dialLimit,
	}, postLimit)
}

// Counts returns how many spans there were.
func (e *Exporter) Counts() Counts {
	return Counts{Exported: e.exported.Load(), Dropped: e.dropped.Load(), Failed: e.failed.Load()}
}

// Run sends what waits until ctx ends, and then tries once more for a moment.
func (e *Exporter) Run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case s := <-e.queue:
			e.send(ctx, e.more(s))
		case <-ctx.Done():
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastChance)
	defer cancel()
	for {
		select {
		case s := <-e.queue:
			e.send(last, e.more(s))
		default:
			return
		}
	}
}

// more adds to a span what waits behind it, as much as a request has.
func (e *Exporter) more(first sdk.ReadOnlySpan) []sdk.ReadOnlySpan {
	batch := []sdk.ReadOnlySpan{first}
	for len(batch) < batchSize {
		select {
		case s := <-e.queue:
			batch = append(batch, s)
		default:
			return batch
		}
	}
	return batch
}

func (e *Exporter) send(ctx context.Context, batch []sdk.ReadOnlySpan) {
	ctx, cancel := context.WithTimeout(ctx, retryFor+postLimit)
	defer cancel()
	err := e.client.ExportSpans(ctx, batch)
	if err == nil {
		e.exported.Add(uint64(len(batch)))
		if e.failing {
			e.o.Log.Info("the collector takes traces again", "url", e.o.URL)
		}
		e.failing = false
		return
	}
	e.failed.Add(uint64(len(batch)))
	if !e.failing {
		e.o.Log.Warn("the collector takes no traces; those of admissions meanwhile are lost, and nothing else", "url", e.o.URL, "error", e.fault(err))
	}
	e.failing = true
}

// fault returns the text of an error for the log. It may quote the answer of the collector, which knows the headers.
func (e *Exporter) fault(err error) string {
	text := err.Error()
	for _, h := range e.o.Headers {
		text = strings.ReplaceAll(text, h.Value.Reveal(), "(secret)")
	}
	return strings.ToValidUTF8(text[:min(len(text), maxFault)], "")
}

// processor puts spans that ended into the queue. The SDK calls it for sampled ones alone.
type processor struct{ e *Exporter }

func (processor) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (processor) Shutdown(context.Context) error             { return nil }
func (processor) ForceFlush(context.Context) error           { return nil }

func (p processor) OnEnd(s sdk.ReadOnlySpan) {
	select {
	case p.e.queue <- s:
	default:
		p.e.dropped.Add(1)
	}
}
