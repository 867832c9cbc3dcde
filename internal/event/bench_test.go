package event_test

import (
	"strings"
	"testing"
	"time"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

// kibibyte is a request whose event has 1 KiB.
func kibibyte(b *testing.B) event.Message {
	q := full()
	q.Input = []byte(`{"path":"/srv/projects/p-1/src/main.py","count":5,"text":""}`)
	m, err := event.EncodeRequest(q, prefix)
	if err != nil {
		b.Fatal(err)
	}
	q.Input = []byte(`{"path":"/srv/projects/p-1/src/main.py","count":5,"text":"` + strings.Repeat("x", max(0, 1024-len(m.Data))) + `"}`)
	if m, err = event.EncodeRequest(q, prefix); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(m.Data)))
	return m
}

func BenchmarkDecodeRequest(b *testing.B) {
	m := kibibyte(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := event.DecodeRequest(m, prefix); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeRequest(b *testing.B) {
	kibibyte(b)
	q := full()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := event.EncodeRequest(q, prefix); err != nil {
			b.Fatal(err)
		}
	}
}

// A worker's share of the wire: the request in, its result out.
func BenchmarkDecodeRequestEncodeResult(b *testing.B) {
	m := kibibyte(b)
	r := fullResult()
	b.ReportAllocs()
	for b.Loop() {
		q, err := event.DecodeRequest(m, prefix)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := event.EncodeResult(b.Context(), r, q, nil, prefix); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefuseRequest(b *testing.B) {
	m := withData(`{"project":"p-2","tool":"a b","limits":{"pids":0},"unknown":1}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := event.DecodeRequest(m, prefix); err == nil {
			b.Fatal("accepted")
		}
	}
}

func BenchmarkEncodeLargeResult(b *testing.B) {
	const size = 50 << 20
	r := &tool.Result{RequestID: "r-1", Project: "p-1", Duration: time.Second, Stdout: &tool.Payload{Content: &spool{pattern: []byte("a"), n: size}}}
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := event.EncodeResult(b.Context(), r, full(), &countingStore{}, prefix); err != nil {
			b.Fatal(err)
		}
	}
}
