package queue

import (
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
)

// serverLog passes what the embedded server says on to slog: its notices are
// details of ours.
type serverLog struct {
	log   *slog.Logger
	fatal chan error
	last  atomic.Pointer[string]
}

func newServerLog(log *slog.Logger) *serverLog {
	return &serverLog{log: log.With("component", "nats-server"), fatal: make(chan error, 1)}
}

func (l *serverLog) lastError() string {
	if s := l.last.Load(); s != nil {
		return *s
	}
	return ""
}

func (l *serverLog) Noticef(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Debugf(format string, v ...any)  { l.log.Debug(fmt.Sprintf(format, v...)) }
func (l *serverLog) Tracef(format string, v ...any)  {}
func (l *serverLog) Warnf(format string, v ...any)   { l.log.Warn(fmt.Sprintf(format, v...)) }

func (l *serverLog) Errorf(format string, v ...any) {
	s := fmt.Sprintf(format, v...)
	l.last.Store(&s)
	l.log.Error(s)
}

// Fatalf is how the server says that it cannot start; it does not stop by itself.
func (l *serverLog) Fatalf(format string, v ...any) {
	s := fmt.Sprintf(format, v...)
	l.log.Error(s)
	select {
	case l.fatal <- errors.New(s):
	default:
	}
}
