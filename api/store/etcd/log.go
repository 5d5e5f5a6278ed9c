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

// quietLogger passes etcd's errors on and drops its other messages. When etcd wants to end the process it ends only its
// goroutine, after fail received the reason.
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
	level := slog.LevelError
	if harmless(e.Message, fields) {
		level = slog.LevelDebug
	}
	c.log.LogAttrs(context.Background(), level, "etcd: "+e.Message, slog.Any("etcd", enc.Fields))
	return nil
}

// harmless reports an error that every new member meets: etcd wants to note the version of its storage before it has
// applied a first entry, whose term the version is read from. It tries again every few seconds until that worked.
func harmless(message string, fields []zapcore.Field) bool {
	if message != "failed to update storage version" {
		return false
	}
	for _, f := range fields {
		if cause, ok := f.Interface.(error); ok && strings.HasSuffix(cause.Error(), "missing term information") {
			return true
		}
	}
	return false
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
