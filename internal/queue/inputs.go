package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

const (
	inputTries = 3
	inputPause = 200 * time.Millisecond
	// A slow line moves event.MaxReferenced in it.
	inputTimeout = 2 * time.Minute
)

// ErrMismatch: an object is there, but it is not the one that was meant.
// Nothing of it is in the error.
var ErrMismatch = errors.New("object does not match its reference")

// Inputs are the object stores of large inputs, one per project.
type Inputs struct{ client *Client }

// Inputs gives access to the large inputs of the fleet's projects.
func (c *Client) Inputs() Inputs { return Inputs{c} }

// InputRef is the dataref of a large input (PROTOCOL.md section 2).
func (n Names) InputRef(project, requestID, sum string) string {
	return "nats-obj://" + n.InputsStore(project) + "/" + requestID + "?sha256=" + sum
}

// Put streams the data of a request into its project's store, which it makes
// when missing, and returns the dataref.
func (i Inputs) Put(ctx context.Context, project, requestID string, r io.Reader) (string, error) {
	c := i.client
	if err := tool.CheckName("project", project); err != nil {
		return "", err
	}
	name := c.Names.InputsStore(project)
	if _, err := c.objectStore(ctx, name); errors.Is(err, ErrNotFound) {
		p := storePart(name, "Large inputs of project "+project, inputsAge)
		p.setReplicas(1)
		if err := c.create(ctx, p); err != nil {
			return "", err
		}
	}
	_, sum, err := c.putObject(ctx, name, requestID, r)
	if err != nil {
		return "", err
	}
	return c.Names.InputRef(project, requestID, hex.EncodeToString(sum)), nil
}

// Get reads a large input whole and verifies it. An object that is missing
// after a few tries is ErrNotFound; one with another hash or above
// event.MaxReferenced is ErrMismatch. Other errors are those of the connection.
func (i Inputs) Get(ctx context.Context, project, requestID, sum string) ([]byte, error) {
	var data []byte
	var err error
	for try := range inputTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(inputPause):
			}
		}
		err = i.client.persistWithin(ctx, "read large input", inputTimeout, func(ctx context.Context) error {
			var err error
			data, err = i.read(ctx, project, requestID, sum)
			if errors.Is(err, ErrNotFound) || errors.Is(err, ErrMismatch) {
				return permanent{err}
			}
			return err
		})
		if !errors.Is(err, ErrNotFound) {
			break
		}
	}
	return data, err
}

func (i Inputs) read(ctx context.Context, project, requestID, sum string) ([]byte, error) {
	store, err := i.client.objectStore(ctx, i.client.Names.InputsStore(project))
	if err != nil {
		return nil, err
	}
	r, info, err := openObject(ctx, store, requestID)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	if info.Size > event.MaxReferenced {
		return nil, fmt.Errorf("%w: it has %d bytes, the limit is %d", ErrMismatch, info.Size, event.MaxReferenced)
	}
	data, err := io.ReadAll(io.LimitReader(r, event.MaxReferenced+1))
	if err != nil {
		return nil, fmt.Errorf("read large input: %w", err)
	}
	if have := sha256.Sum256(data); hex.EncodeToString(have[:]) != sum {
		return nil, fmt.Errorf("%w: its SHA-256 is another", ErrMismatch)
	}
	return data, nil
}
