package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	jsonx "github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"
)

// manifest is the value of the key revision: which write of which key is in
// force. Entries are written first, then the manifest is exchanged in one
// step, so that nobody ever sees half of an apply: what it does not name is
// not in force yet, and what it names stays readable in the history.
type manifest struct {
	Entries map[string]uint64 `json:"entries"` // key to its revision in the bucket
	// Files are those beside an entry, by the key of the entry.
	Files map[string]fileSet `json:"files,omitzero"`
}

// set puts a write of a key in force, with the files beside it.
func (m *manifest) set(key string, revision uint64, files fileSet) {
	m.Entries[key] = revision
	if len(files) == 0 {
		delete(m.Files, key)
		return
	}
	if m.Files == nil {
		m.Files = map[string]fileSet{}
	}
	m.Files[key] = files
}

// remove takes a key out of force.
func (m *manifest) remove(key string) {
	delete(m.Entries, key)
	delete(m.Files, key)
}

// content is the keys of all files in force.
func (m *manifest) content() map[string]bool {
	keys := map[string]bool{}
	for _, files := range m.Files {
		for _, digest := range files {
			keys[filePrefix+digest] = true
		}
	}
	return keys
}

func (m *manifest) clone() *manifest {
	return &manifest{Entries: maps.Clone(m.Entries), Files: maps.Clone(m.Files)}
}

func (m *manifest) equal(other *manifest) bool {
	return maps.Equal(m.Entries, other.Entries) &&
		maps.EqualFunc(m.Files, other.Files, func(a, b fileSet) bool { return maps.Equal(a, b) })
}

// errNotManifest: the key revision has a value that somebody else wrote.
var errNotManifest = errors.New("not a manifest")

func parseManifest(value []byte) (*manifest, error) {
	var m manifest
	if err := jsonx.Unmarshal(value, &m, jsonx.RejectUnknownMembers(true)); err != nil || m.Entries == nil {
		return nil, errNotManifest
	}
	return &m, nil
}

func (m *manifest) encode() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode revision: %w", err)
	}
	return text, nil
}

// state says what of a bucket is in force.
type state struct {
	// revision is that of the key revision, 0 when there is none.
	revision uint64
	// manifest is nil in a bucket that was filled by other means than an
	// apply. Then the last write of every key before the revision is in
	// force, or simply the last write while there is no revision.
	manifest *manifest
}

func readState(ctx context.Context, kv jetstream.KeyValue) (state, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	e, err := kv.Get(ctx, revisionKey)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		return state{}, nil
	case err != nil:
		return state{}, fmt.Errorf("read revision of bucket %s: %w", kv.Bucket(), err)
	}
	m, err := parseManifest(e.Value())
	if errors.Is(err, errNotManifest) {
		return state{revision: e.Revision()}, nil
	}
	return state{e.Revision(), m}, err
}

// prefixes of the keys of entries.
const (
	toolPrefix    = "tool."
	projectPrefix = "project."
)

var entryFilters = []string{toolPrefix + "*", projectPrefix + "*"}

func keyFor(kind Kind, name string) string {
	if kind == KindProject {
		return projectPrefix + name
	}
	return toolPrefix + name
}

// refOf reads the key of an entry; false for any other key.
func refOf(key string) (ref, bool) {
	if name, ok := strings.CutPrefix(key, toolPrefix); ok {
		return ref{KindTool, name}, true
	}
	if name, ok := strings.CutPrefix(key, projectPrefix); ok {
		return ref{KindProject, name}, true
	}
	return ref{}, false
}
