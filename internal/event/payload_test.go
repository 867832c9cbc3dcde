package event_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

// memoryStore is a payload store in memory.
type memoryStore map[string][]byte

func (s memoryStore) Put(_ context.Context, project, requestID, member string, r io.Reader) (tool.Ref, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return tool.Ref{}, err
	}
	name := project + "/" + requestID + "/" + member
	s[name] = data
	sum := sha256.Sum256(data)
	return tool.Ref{Object: name, SizeBytes: int64(len(data)), SHA256: hex.EncodeToString(sum[:])}, nil
}

// stored is the object of a moved member, which must be what its ref says.
func (s memoryStore) stored(t testing.TB, doc *event.ResultDoc, member string) string {
	t.Helper()
	ref, ok := doc.Refs[member]
	data := s[ref.Object]
	if !ok || ref.Object != "p-1/r-1/"+member || ref.SizeBytes != int64(len(data)) || ref.SHA256 != sumOf(string(data)) {
		t.Fatalf("%s: ref %+v, object of %d bytes with sha256 %s", member, ref, len(data), sumOf(string(data)))
	}
	return string(data)
}

func large(output, value, stdout, stderr *tool.Payload) *tool.Result {
	return &tool.Result{RequestID: "r-1", Project: "p-1", Tool: "t", Output: output, Value: value, Stdout: stdout, Stderr: stderr}
}

func TestTheLargestMemberMovesFirst(t *testing.T) {
	store := memoryStore{}
	text := strings.Repeat("a", 300<<10)
	_, doc := encode(t, large(tool.Text(text), nil, tool.Text(text+"b"), tool.Text("small")), full(), store)
	if len(doc.Refs) != 1 || store.stored(t, doc, "stdout") != text+"b" {
		t.Fatalf("refs %+v", doc.Refs)
	}
	if want := text[:8<<10]; *doc.Stdout != want || *doc.Stderr != "small" || string(doc.Output) != `"`+text+`"` {
		t.Errorf("stdout of %d bytes, stderr %q, output of %d", len(*doc.Stdout), *doc.Stderr, len(doc.Output))
	}
}

func TestMembersMoveUntilItFits(t *testing.T) {
	store := memoryStore{}
	document := `{"a":"` + strings.Repeat("x", 600<<10) + `"}`
	list := "[" + strings.Repeat("1, ", 190<<10) + "1]"
	text := strings.Repeat("é\n", 200<<10)
	r := large(tool.Document([]byte(document)), tool.Document([]byte(list)), tool.Text(text), tool.Text(text))
	for i := range 20_000 {
		r.Changes = append(r.Changes, tool.Change{Path: fmt.Sprintf("some/directory/with/files/number-%d", i), Change: tool.Created})
		r.Files = append(r.Files, tool.File{HostPath: fmt.Sprintf("/srv/p-1/%d", i), SHA256: sumOf("")})
	}
	m, doc := encode(t, r, full(), store)
	if len(doc.Refs) != 6 {
		t.Fatalf("refs %+v", doc.Refs)
	}
	for member, want := range map[string]string{"output": document, "value": list, "stdout": text, "stderr": text} {
		if store.stored(t, doc, member) != want {
			t.Errorf("%s is stored otherwise", member)
		}
	}
	var changes []tool.Change
	var files []tool.File
	if err := json.Unmarshal([]byte(store.stored(t, doc, "changes")), &changes); err != nil || len(changes) != 20_000 || changes[19_999] != r.Changes[19_999] {
		t.Errorf("error %v, %d changes", err, len(changes))
	}
	if err := json.Unmarshal([]byte(store.stored(t, doc, "files")), &files); err != nil || len(files) != 20_000 || files[7] != r.Files[7] {
		t.Errorf("error %v, %d files", err, len(files))
	}
	// A moved document is absent, a moved text keeps its head.
	if doc.Output != nil || doc.Value != nil || doc.Files != nil || doc.Changes != nil || len(m.Data) > 32<<10 {
		t.Errorf("a result of %d bytes", len(m.Data))
	}
	if *doc.Stdout != text[:len(*doc.Stdout)] || len(*doc.Stdout) > 8<<10 || len(*doc.Stdout) < 8<<10-1 {
		t.Errorf("a head of %d bytes", len(*doc.Stdout))
	}
}

func TestSizesAtTheLimit(t *testing.T) {
	m, _ := encode(t, large(tool.Text(""), nil, nil, nil), full(), nil)
	room := event.MaxResult - len(m.Data) - 4 // the time may have a few digits less
	m, doc := encode(t, large(tool.Text(strings.Repeat("a", room)), nil, nil, nil), full(), nil)
	if doc.Refs != nil || len(m.Data) < event.MaxResult-20 {
		t.Errorf("result of %d bytes, refs %v", len(m.Data), doc.Refs)
	}
	_, doc = encode(t, large(tool.Text(strings.Repeat("a", room+32)), nil, nil, nil), full(), memoryStore{})
	if doc.Refs == nil {
		t.Error("nothing was moved")
	}
	// What counts is the size of the event, not of the text.
	_, doc = encode(t, large(tool.Text(strings.Repeat("\x01", 100<<10)), nil, nil, nil), full(), memoryStore{})
	if doc.Refs == nil {
		t.Error("nothing was moved")
	}
	_, doc = encode(t, large(tool.Text(strings.Repeat("\"", 255<<10)), nil, nil, nil), full(), nil)
	if doc.Refs != nil {
		t.Errorf("moved: %v", doc.Refs)
	}
}

// spool is a content that gives n bytes without having them.
type spool struct {
	pattern []byte
	n       int64
	opened  int
	closed  int
}

func (s *spool) Size() int64 { return s.n }
func (s *spool) Open() (io.ReadCloser, error) {
	s.opened++
	return &spoolReader{spool: s}, nil
}
func (s *spool) Close() error { return nil }

type spoolReader struct {
	*spool
	at    int64
	block []byte // whole patterns
}

func (r *spoolReader) Read(p []byte) (int, error) {
	if r.at == r.n {
		return 0, io.EOF
	}
	if r.block == nil {
		r.block = bytes.Repeat(r.pattern, 4096)
	}
	p = p[:min(int64(len(p)), r.n-r.at)]
	n := copy(p, r.block[r.at%int64(len(r.block)):])
	r.at += int64(n)
	return n, nil
}

func (r *spoolReader) Close() error {
	r.closed++
	return nil
}

// countingStore only counts.
type countingStore struct{ size int64 }

func (s *countingStore) Put(_ context.Context, project, requestID, member string, r io.Reader) (tool.Ref, error) {
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, r, make([]byte, 64<<10))
	s.size += n
	return tool.Ref{Object: project + "/" + requestID + "/" + member}, err
}

// 50 MiB are streamed: the memory of a worker stays flat.
func TestLargeContentIsStreamed(t *testing.T) {
	const size = 50 << 20
	store := &countingStore{}
	stdout, stderr := &spool{pattern: []byte("aé€😀\n"), n: size / 11 * 11}, &spool{pattern: []byte("b"), n: size}
	r := large(nil, nil, &tool.Payload{Content: stdout}, &tool.Payload{Content: stderr})
	r.Changes = make([]tool.Change, 200_000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	m, err := event.EncodeResult(t.Context(), r, full(), store, prefix)
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	// Encoding items of lists allocates, but nothing of it stays.
	if held := after.TotalAlloc - before.TotalAlloc; held > 64<<20 {
		t.Errorf("%d MiB were allocated", held>>20)
	}
	if live := int64(after.HeapAlloc) - int64(before.HeapAlloc); live > 16<<20 {
		t.Errorf("%d MiB are held", live>>20)
	}
	doc, err := event.DecodeResult(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(doc.Refs) != 3 || store.size < 2*size || doc.Refs["stderr"].SizeBytes != size || !utf8.ValidString(*doc.Stdout) || len(*doc.Stdout) > event.MaxHead {
		t.Errorf("refs %+v, %d bytes stored", doc.Refs, store.size)
	}
	for _, s := range []*spool{stdout, stderr} {
		if s.opened != 1 || s.closed != 1 {
			t.Errorf("opened %d times, closed %d times", s.opened, s.closed)
		}
	}
}

type failingStore struct{ err error }

func (s failingStore) Put(context.Context, string, string, string, io.Reader) (tool.Ref, error) {
	return tool.Ref{}, s.err
}

// shortContent gives less than it promises.
type shortContent struct{ tool.Bytes }

func (s shortContent) Size() int64 { return 1 << 20 }

type brokenContent struct{ tool.Bytes }

func (b brokenContent) Open() (io.ReadCloser, error) { return nil, errors.New("disk on fire") }

type hugeBrokenContent struct{ brokenContent }

func (b hugeBrokenContent) Size() int64 { return 1 << 20 }

func TestStoreAndContentFail(t *testing.T) {
	huge := &tool.Payload{Content: tool.Bytes(bytes.Repeat([]byte("a"), 600<<10))}
	broken := errors.New("store on fire")
	for name, c := range map[string]struct {
		payload *tool.Payload
		store   event.PayloadStore
		want    string
	}{
		"no store":                     {huge, nil, "there is no payload store"},
		"a store that fails":           {huge, failingStore{broken}, "store stdout: store on fire"},
		"a content cut short":          {&tool.Payload{Content: shortContent{}}, memoryStore{}, "0 bytes were read, expected 1048576"},
		"a content that cannot open":   {&tool.Payload{Content: brokenContent{}}, nil, "read stdout: disk on fire"},
		"a large one that cannot open": {&tool.Payload{Content: hugeBrokenContent{}}, memoryStore{}, "open stdout: disk on fire"},
		"a store that reads nothing":   {huge, failingStore{}, "0 bytes were read"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := event.EncodeResult(t.Context(), large(nil, nil, c.payload, nil), full(), c.store, prefix)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, expected %q", err, c.want)
			}
		})
	}
	if _, err := event.EncodeResult(t.Context(), large(nil, nil, huge, nil), full(), failingStore{broken}, prefix); !errors.Is(err, broken) {
		t.Errorf("error %v does not wrap the store's", err)
	}
}

// Whatever the sizes, everything is either in place or in the store, whole.
func TestNothingIsLost(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string {
		unit := rapid.SampledFrom([]string{"a", "a", "é", "\x00", "\"", "😀"}).Draw(t, "unit")
		return strings.Repeat(unit, rapid.SampledFrom([]int{0, 1, 1000, 8191, 8192, 8193, 8193, 60_000, 90_000, 180_000, 530_000}).Draw(t, "count"))
	})
	rapid.Check(t, func(t *rapid.T) {
		store := memoryStore{}
		stdout, stderr, output := text.Draw(t, "stdout"), text.Draw(t, "stderr"), text.Draw(t, "output")
		value, _ := json.Marshal(text.Draw(t, "value"))
		m, err := event.EncodeResult(context.Background(), large(tool.Text(output), tool.Document(value), tool.Text(stdout), tool.Text(stderr)), full(), store, prefix)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := event.DecodeResult(m)
		if err != nil || len(m.Data) > event.MaxResult {
			t.Fatalf("error %v, %d bytes", err, len(m.Data))
		}
		var inPlace string
		if err := json.Unmarshal(doc.Output, &inPlace); err != nil {
			t.Fatal(err)
		}
		for member, c := range map[string]struct{ got, want string }{
			"stdout": {*doc.Stdout, stdout}, "stderr": {*doc.Stderr, stderr}, "output": {inPlace, output},
		} {
			ref, moved := doc.Refs[member]
			switch {
			case !moved && c.got != c.want:
				t.Fatalf("%s of %d bytes is %d bytes in place", member, len(c.want), len(c.got))
			case moved && (string(store[ref.Object]) != c.want || len(c.got) > event.MaxHead || !strings.HasPrefix(c.want, c.got)):
				t.Fatalf("%s of %d bytes: %d stored, head of %d", member, len(c.want), len(store[ref.Object]), len(c.got))
			case moved && len(c.want) >= event.MaxHead && len(c.got) < event.MaxHead-3:
				t.Fatalf("%s: head of %d bytes", member, len(c.got))
			}
		}
		ref, moved := doc.Refs["value"]
		if moved == (doc.Value != nil) || moved && !bytes.Equal(store[ref.Object], value) || !moved && !bytes.Equal(doc.Value, value) {
			t.Fatalf("value of %d bytes: moved %v", len(value), moved)
		}
	})
}
