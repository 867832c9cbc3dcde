package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/sourcegraph/conc/iter"
)

// bucket reads the catalogue from the KV bucket. It is not safe for
// concurrent use.
type bucket struct {
	handle *bucketHandle
	mark   mark
	seen   state
	loaded bool // seen is of the bucket that was created then
	since  time.Time
	// cache has what was read last, by key: a reload reads what changed.
	cache map[string]cached
	// scratch takes the files beside entries; nil leaves them where they are.
	scratch *scratch
	// lacking counts how often something that the manifest of lackingOf names
	// was not there.
	lacking   int
	lackingOf uint64
}

// cached is one write of a key.
type cached struct {
	revision uint64
	document *document
}

const (
	// few is how many entries are read one by one; more are read in one go
	// with their history.
	few = 50
	// patience is how often a manifest may name what is not there before it
	// is taken at its word: a replica may lag behind.
	patience = 3
)

// errLagging: the bucket is not yet readable as its manifest says.
var errLagging = errors.New("entries of the new revision are not readable yet")

// refresh reads the bucket if anything was written to it.
func (b *bucket) refresh(ctx context.Context, prev *Snapshot) (*Snapshot, Faults, error) {
	kv, at, err := b.handle.position(ctx)
	if err != nil {
		return nil, nil, err
	}
	if b.loaded && b.mark.current(at) {
		return nil, nil, nil
	}
	now, err := readState(ctx, kv)
	if err != nil {
		return nil, nil, err
	}
	if !b.since.Equal(at.created) { // revisions of another bucket mean nothing here
		b.loaded, b.cache, b.since = false, nil, at.created
	}
	b.mark.set(at)
	if b.loaded && now.revision == b.seen.revision && now.revision != 0 && b.lacking == 0 {
		return nil, nil, nil
	}
	next, faults, err := b.load(ctx, kv, now, prev)
	if err != nil {
		b.mark = mark{}
		return nil, nil, err
	}
	b.seen, b.loaded = now, true
	return next, faults, nil
}

// load reads the entries that are in force.
func (b *bucket) load(ctx context.Context, kv jetstream.KeyValue, now state, prev *Snapshot) (*Snapshot, Faults, error) {
	var cache map[string]cached
	lacking := map[string]string{} // reason by key
	var err error
	if now.manifest != nil {
		cache, err = b.read(ctx, kv, now.manifest, lacking)
	} else {
		cache, err = b.readAll(ctx, kv, now.revision)
	}
	if err != nil {
		return nil, nil, err
	}
	b.cache = cache
	dirs, err := b.placeFiles(ctx, kv, now.manifest, lacking)
	if err != nil {
		return nil, nil, err
	}
	if err := b.await(now.revision, lacking); err != nil {
		return nil, nil, fmt.Errorf("read bucket %s: %w", kv.Bucket(), err)
	}

	c := newCollation()
	for key, found := range cache {
		if _, ok := lacking[key]; ok {
			continue
		}
		if found.document.entry != nil {
			c.add(found.document.at(key, 0).besides(dirs[key]))
			continue
		}
		r, _ := refOf(key)
		c.refuse(key, r.kind, r.name, found.document.faultsAt(key, 0)...)
	}
	for key, reason := range lacking {
		r, _ := refOf(key)
		c.refuse(key, r.kind, r.name, Fault{Place: Place{File: key}, Entry: title(r.kind, r.name), Reason: reason})
	}
	next := c.snapshot(prev)
	if now.revision != 0 && len(lacking) == 0 {
		next.revision = strconv.FormatUint(now.revision, 10)
	}
	return next, c.faults, nil
}

// await is patient with a manifest that names what is not there.
func (b *bucket) await(revision uint64, lacking map[string]string) error {
	if len(lacking) == 0 || b.lackingOf != revision {
		b.lacking, b.lackingOf = 0, revision
	}
	if len(lacking) == 0 {
		return nil
	}
	if b.lacking++; b.lacking > patience {
		return nil
	}
	first := slices.Min(slices.Collect(maps.Keys(lacking)))
	return fmt.Errorf("revision %d, %d entries, such as %s: %s: %w", revision, len(lacking), first, lacking[first], errLagging)
}

// placeFiles puts the files beside entries where tools can read them, and
// returns their directories by the key of the entry.
func (b *bucket) placeFiles(ctx context.Context, kv jetstream.KeyValue, m *manifest, lacking map[string]string) (map[string]string, error) {
	if b.scratch == nil || m == nil {
		return nil, nil
	}
	dirs := make(map[string]string, len(m.Files))
	for key, files := range m.Files {
		dir, err := b.scratch.place(ctx, kv, files)
		switch {
		case errors.Is(err, errFile):
			lacking[key] = err.Error()
		case err != nil:
			return nil, err
		}
		dirs[key] = dir
	}
	return dirs, nil
}

// read returns what the manifest names, and adds what is not there to lacking.
func (b *bucket) read(ctx context.Context, kv jetstream.KeyValue, m *manifest, lacking map[string]string) (map[string]cached, error) {
	cache := make(map[string]cached, len(m.Entries))
	var wanted []string
	for key, revision := range m.Entries {
		if _, ok := refOf(key); !ok {
			continue
		}
		if old, ok := b.cache[key]; ok && old.revision == revision {
			cache[key] = old
			continue
		}
		wanted = append(wanted, key)
	}
	if len(wanted) > few {
		records, err := scan(ctx, kv, true, entryFilters...)
		if err != nil {
			return nil, err
		}
		records = slices.DeleteFunc(records, func(rec record) bool {
			return m.Entries[rec.key] != rec.revision || rec.deleted || cache[rec.key].revision == rec.revision
		})
		maps.Copy(cache, b.decode(records))
	}
	for _, key := range wanted {
		if _, ok := cache[key]; ok {
			continue
		}
		value, err := getRevision(ctx, kv, key, m.Entries[key])
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
			lacking[key] = fmt.Sprintf("revision %d of it is gone from the bucket: apply it again", m.Entries[key])
		case err != nil:
			return nil, err
		default:
			cache[key] = cached{m.Entries[key], readRecord(key, value)}
		}
	}
	return cache, nil
}

func getRevision(ctx context.Context, kv jetstream.KeyValue, key string, revision uint64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	e, err := kv.GetRevision(ctx, key, revision)
	if err != nil {
		return nil, fmt.Errorf("read %s of bucket %s: %w", key, kv.Bucket(), err)
	}
	return e.Value(), nil
}

// readAll returns the last write of every key before the revision before; 0
// means no bound.
func (b *bucket) readAll(ctx context.Context, kv jetstream.KeyValue, before uint64) (map[string]cached, error) {
	records, err := scan(ctx, kv, before != 0, entryFilters...)
	if err != nil {
		return nil, err
	}
	last := map[string]record{}
	for _, rec := range records {
		if before == 0 || rec.revision < before {
			last[rec.key] = rec
		}
	}
	cache := make(map[string]cached, len(last))
	var fresh []record
	for key, rec := range last {
		if rec.deleted {
			continue
		}
		if old, ok := b.cache[key]; ok && old.revision == rec.revision {
			cache[key] = old
			continue
		}
		fresh = append(fresh, rec)
	}
	maps.Copy(cache, b.decode(fresh))
	return cache, nil
}

// decode validates records, by key.
func (b *bucket) decode(records []record) map[string]cached {
	mapper := iter.Mapper[record, cached]{MaxGoroutines: readers(b.loaded)}
	decoded := mapper.Map(records, func(rec *record) cached {
		return cached{rec.revision, readRecord(rec.key, rec.value)}
	})
	byKey := make(map[string]cached, len(records))
	for i, rec := range records {
		byKey[rec.key] = decoded[i]
	}
	return byKey
}
