package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"github.com/toolworker/toolworker/internal/tool"
)

// Payloads is the object store of large results (event.PayloadStore).
type Payloads struct{ client *Client }

// Payloads is the store of the fleet.
func (c *Client) Payloads() Payloads { return Payloads{c} }

// PayloadName is the object that holds a moved member of a result.
func PayloadName(project, requestID, member string) string {
	return project + "/" + requestID + "/" + member
}

// Put streams a member of a result into the store. It does not retry: r can
// be read only once.
func (p Payloads) Put(ctx context.Context, project, requestID, member string, r io.Reader) (tool.Ref, error) {
	name := PayloadName(project, requestID, member)
	size, sum, err := p.client.putObject(ctx, p.client.Names.PayloadsStore(), name, r)
	if err != nil {
		return tool.Ref{}, err
	}
	return tool.Ref{Object: name, SizeBytes: size, SHA256: hex.EncodeToString(sum)}, nil
}

// Open reads a moved member. Reading fails at its end when size or hash are
// not those of ref. ErrNotFound when it has expired.
func (p Payloads) Open(ctx context.Context, ref tool.Ref) (io.ReadCloser, error) {
	store, err := p.client.objectStore(ctx, p.client.Names.PayloadsStore())
	if err != nil {
		return nil, err
	}
	r, _, err := openObject(ctx, store, ref.Object)
	if err != nil {
		return nil, err
	}
	return &verified{r: r, ref: ref, hash: sha256.New()}, nil
}

// verified reads an object and checks at its end that it is the right one.
type verified struct {
	r    io.ReadCloser
	ref  tool.Ref
	hash hash.Hash
	size int64
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.hash.Write(p[:n])
	v.size += int64(n)
	if err == io.EOF {
		if sum := hex.EncodeToString(v.hash.Sum(nil)); v.size != v.ref.SizeBytes || sum != v.ref.SHA256 {
			return n, fmt.Errorf("object %s: has %d bytes and hash %s, expected %d bytes and %s",
				v.ref.Object, v.size, sum, v.ref.SizeBytes, v.ref.SHA256)
		}
	}
	return n, err
}

func (v *verified) Close() error { return v.r.Close() }
