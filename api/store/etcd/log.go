package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// quietLogger passes etcd's errors on and drops its chatter. When etcd wants
// to end the process it ends only its goroutine, after fail was told why.
func quietLogger(log *slog.Logger, fail func(error)) *zap.Logger {
	core := &slogCore{log: log}
	return zap.New(core, zap.WithFatalHook(&fatalHook{fail: fail}))
}

// slogCore is a zapcore.Core that writes to slog, errors and worse only.
type slogCore struct {
	log    *slog.Logger
	fields []zapcore.Field
}

func (c *slogCore) Enabled(l zapcore.Level) bool { return l >= zapcore.ErrorLevel }

func (c *slogCore) With(f []zapcore.Field) zapcore.Core {
	return &slogCore{log: c.log, fields: append(c.fields[:len(c.fields):len(c.fields)], f...)}
}

func (c *slogCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c *slogCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range append(c.fields[:len(c.fields):len(c.fields)], fields...) {
		f.AddTo(enc)
	}
	c.log.LogAttrs(context.Background(), slog.LevelError, "etcd: "+e.Message, slog.Any("etcd", enc.Fields))
	return nil
}

func (c *slogCore) Sync() error { return nil }

type fatalHook struct{ fail func(error) }

// OnWrite implements zapcore.CheckWriteHook.
func (h *fatalHook) OnWrite(ce *zapcore.CheckedEntry, fields []zapcore.Field) {
	h.fail(fatalError(ce.Message, fields))
	zapcore.WriteThenGoexit.OnWrite(ce, fields)
}

func fatalError(msg string, fields []zapcore.Field) error {
	err := errors.New(strings.TrimPrefix(msg, "failed to "))
	for _, f := range fields {
		if cause, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			err = fmt.Errorf("%v: %w", err, cause)
		}
	}
	return explain(err)
}
