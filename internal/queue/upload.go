package queue

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	chunkSize = 128 << 10 // that of the clients of all languages
	// A stream takes 128 MiB ahead of its disk and refuses what is beyond,
	// from all clients together. The library's own upload sends a whole object
	// ahead: 64 results of 50 MiB at once never got through.
	chunksUnderWay  = 8
	objectsUnderWay = 8
	chunkTimeout    = 30 * time.Second // a disk may be busy
	cleanUpTimeout  = 10 * time.Second
)

var errConnectionLost = errors.New("connection was lost meanwhile")

// upload writes one object in the form of the object stores of NATS (ADR-20):
// its chunks, of which few are under way at a time, and then what makes it
// visible.
type upload struct {
	client *Client
	bucket string
	name   string
	nuid   string // of the chunks; the object says which are its own

	size     int64
	chunks   uint32
	hash     hash.Hash
	underWay []jetstream.PubAckFuture // oldest first
}

// put streams r into an object, in the place of the one that was there.
func (u *upload) put(ctx context.Context, store jetstream.ObjectStore, r io.Reader) error {
	var before *jetstream.ObjectInfo
	// A server that is away is waited for before r is touched.
	err := u.client.persist(ctx, "look up object", func(ctx context.Context) error {
		var err error
		before, err = store.GetInfo(ctx, u.name, jetstream.GetObjectInfoShowDeleted())
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	sending, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Acknowledgements are lost with the connection.
	defer context.AfterFunc(u.client.connection(), func() { cancel(errConnectionLost) })()
	err = u.send(sending, r)
	if err == nil {
		err = u.show(sending)
	}
	if err != nil {
		u.remove(ctx, u.nuid)
		return err
	}
	if before != nil && !before.Deleted {
		u.remove(ctx, before.NUID)
	}
	return nil
}

// send sends the chunks and waits until all are stored.
func (u *upload) send(ctx context.Context, r io.Reader) error {
	chunk := make([]byte, chunkSize)
	for {
		n, err := io.ReadFull(r, chunk)
		if n > 0 {
			if err := u.sendChunk(ctx, chunk[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			for len(u.underWay) > 0 {
				if err := u.await(ctx); err != nil {
					return err
				}
			}
			return nil
		case err != nil:
			return err
		}
	}
}

// sendChunk sends one chunk, which is not kept.
func (u *upload) sendChunk(ctx context.Context, chunk []byte) error {
	if len(u.underWay) == chunksUnderWay {
		if err := u.await(ctx); err != nil {
			return err
		}
	}
	m := &nats.Msg{Subject: u.chunkSubject(u.nuid), Data: chunk}
	stored, err := u.client.js.PublishMsgAsync(m, jetstream.WithRetryAttempts(0))
	if err != nil {
		return err
	}
	u.underWay = append(u.underWay, stored)
	u.size += int64(len(chunk))
	u.chunks++
	u.hash.Write(chunk)
	return nil
}

// await waits for the oldest chunk that is under way.
func (u *upload) await(ctx context.Context) error {
	oldest := u.underWay[0]
	timer := time.NewTimer(chunkTimeout)
	defer timer.Stop()
	select {
	case <-oldest.Ok():
		u.underWay = u.underWay[1:]
		return nil
	case err := <-oldest.Err():
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return fmt.Errorf("no answer of the server within %s", chunkTimeout)
	}
}

// show stores what makes the chunks an object.
func (u *upload) show(ctx context.Context) error {
	info, err := json.Marshal(jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: u.name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: chunkSize}},
		Bucket:     u.bucket, NUID: u.nuid, Size: uint64(u.size), Chunks: u.chunks,
		Digest: "SHA-256=" + base64.URLEncoding.EncodeToString(u.hash.Sum(nil)),
	})
	if err != nil {
		return err
	}
	m := nats.NewMsg("$O." + u.bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(u.name)))
	m.Header.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	m.Data = info
	_, err = u.client.publish(ctx, m)
	return err
}

// remove removes chunks that no object has any more. Those that stay expire.
func (u *upload) remove(ctx context.Context, nuid string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	stream, err := u.client.js.Stream(ctx, "OBJ_"+u.bucket)
	if err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject(u.chunkSubject(nuid)))
	}
	if err != nil {
		u.client.log.Debug("remove chunks", "bucket", u.bucket, "object", u.name, "error", err)
	}
}

func (u *upload) chunkSubject(nuid string) string { return "$O." + u.bucket + ".C." + nuid }

// putObject streams r into an object and returns its size and hash. Few are
// written at a time; the others wait until ctx ends.
func (c *Client) putObject(ctx context.Context, bucket, name string, r io.Reader) (size int64, sum []byte, err error) {
	store, err := c.objectStore(ctx, bucket)
	if err != nil {
		return 0, nil, err
	}
	select {
	case c.uploads <- struct{}{}:
		defer func() { <-c.uploads }()
	case <-ctx.Done():
		return 0, nil, fmt.Errorf("store object %s: %w", name, context.Cause(ctx))
	}
	u := &upload{client: c, bucket: bucket, name: name, nuid: rand.Text(), hash: sha256.New()}
	if err := u.put(ctx, store, r); err != nil {
		return 0, nil, fmt.Errorf("store object %s: %w", name, err)
	}
	return u.size, u.hash.Sum(nil), nil
}
