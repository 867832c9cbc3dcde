package catalog

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// Store is the operator's side of the bucket.
type Store struct {
	handle *bucketHandle
	kv     jetstream.KeyValue
}

// OpenStore opens the bucket of that name, which must be there.
func OpenStore(ctx context.Context, js jetstream.JetStream, name string) (*Store, error) {
	h := &bucketHandle{js: js, name: name}
	kv, err := h.open(ctx)
	if err != nil {
		return nil, err
	}
	return &Store{handle: h, kv: kv}, nil
}

// Snapshot reads what is in force, and what is wrong with it. Its revision is
// that of the bucket.
func (s *Store) Snapshot(ctx context.Context) (*Snapshot, Faults, error) {
	b := &bucket{handle: s.handle}
	next, faults, err := b.refresh(ctx, newSnapshot())
	for range attempts {
		if !errors.Is(err, errLagging) {
			break
		}
		next, faults, err = b.refresh(ctx, newSnapshot()) // somebody applies, or a replica lags
	}
	if err != nil {
		return nil, nil, err
	}
	if next.switches, err = readSwitches(ctx, s.kv); err != nil {
		return nil, nil, err
	}
	return next, faults, nil
}

// Get returns the JSON form of an entry that is in force. name is tool.NAME,
// project.NAME, or NAME where it is unambiguous.
func (s *Store) Get(ctx context.Context, name string) ([]byte, error) {
	now, err := readState(ctx, s.kv)
	if err != nil {
		return nil, err
	}
	m, err := s.inForce(ctx, now)
	if err != nil {
		return nil, err
	}
	key, err := findKey(m.Entries, name)
	if err != nil {
		return nil, err
	}
	return getRevision(ctx, s.kv, key, m.Entries[key])
}

// Delete takes an entry out of force. name is as in Get.
func (s *Store) Delete(ctx context.Context, name string) error {
	var key string
	_, err := s.commit(ctx, func(_ context.Context, m *manifest) error {
		var err error
		if key, err = findKey(m.Entries, name); err != nil {
			return err
		}
		m.remove(key)
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", name, err)
	}
	// The value is of no use to anybody now. Its history stays readable for
	// those who still work with the state before.
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := s.kv.Delete(ctx, key); err != nil {
		return fmt.Errorf("delete %s: it is out of force, but its value is still in the bucket: %w", key, err)
	}
	return nil
}

// findKey is the key of the entry that an operator names.
func findKey(entries map[string]uint64, name string) (string, error) {
	if strings.Contains(name, ".") {
		if _, ok := entries[name]; ok {
			return name, nil
		}
		return "", fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	toolKey, projectKey := keyFor(KindTool, name), keyFor(KindProject, name)
	_, isTool := entries[toolKey]
	_, isProject := entries[projectKey]
	switch {
	case isTool && isProject:
		return "", fmt.Errorf("%s: %w", name, ErrAmbiguous)
	case isTool:
		return toolKey, nil
	case isProject:
		return projectKey, nil
	}
	return "", fmt.Errorf("%s: %w", name, ErrNotFound)
}

// inForce is a manifest of what is in force, which may be changed. A bucket
// that was filled by other means has none of its own.
func (s *Store) inForce(ctx context.Context, now state) (*manifest, error) {
	if now.manifest != nil {
		return now.manifest.clone(), nil
	}
	records, err := scan(ctx, s.kv, now.revision != 0, entryFilters...)
	if err != nil {
		return nil, err
	}
	entries := map[string]uint64{}
	for _, rec := range records {
		switch {
		case now.revision != 0 && rec.revision > now.revision:
		case rec.deleted:
			delete(entries, rec.key)
		default:
			entries[rec.key] = rec.revision
		}
	}
	return &manifest{Entries: entries}, nil
}

// attempts is how often a commit is tried when others commit meanwhile.
const attempts = 10

// commit changes what is in force in one step: change gets a copy of it, and
// is called again when somebody else was faster. It returns the new revision.
func (s *Store) commit(ctx context.Context, change func(context.Context, *manifest) error) (uint64, error) {
	for range attempts {
		now, err := readState(ctx, s.kv)
		if err != nil {
			return 0, err
		}
		m, err := s.inForce(ctx, now)
		if err != nil {
			return 0, err
		}
		if now.manifest == nil {
			// From here on only a manifest says what is in force: entries
			// that are written now must not be seen before it names them.
			now.revision, err = s.exchange(ctx, m, now.revision)
			if errors.Is(err, ErrConflict) {
				continue
			}
			if err != nil {
				return 0, err
			}
			now.manifest = m.clone()
		}
		if err := change(ctx, m); err != nil {
			return 0, err
		}
		if m.equal(now.manifest) {
			return now.revision, nil
		}
		revision, err := s.exchange(ctx, m, now.revision)
		if errors.Is(err, ErrConflict) {
			continue
		}
		return revision, err
	}
	return 0, ErrConflict
}

// exchange writes the manifest if the revision is still before, 0 meaning
// that there is none.
func (s *Store) exchange(ctx context.Context, m *manifest, before uint64) (uint64, error) {
	text, err := m.encode()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	var revision uint64
	if before == 0 {
		revision, err = s.kv.Create(ctx, revisionKey, text)
	} else {
		revision, err = s.kv.Update(ctx, revisionKey, text, before)
	}
	switch {
	case errors.Is(err, jetstream.ErrKeyExists), isWrongSequence(err):
		return 0, ErrConflict
	case err != nil:
		return 0, fmt.Errorf("write revision of bucket %s: %w", s.kv.Bucket(), err)
	}
	return revision, nil
}

func isWrongSequence(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence ||
		api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequenceConstant) // the latter with replicas
}
