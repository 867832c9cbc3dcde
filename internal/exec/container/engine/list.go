package engine

import (
	"context"
	"errors"
	"maps"

	"github.com/moby/moby/client"
)

// Labelled is a container or volume that carries a label.
type Labelled struct {
	ID     string // of a container, or the name of a volume
	Labels map[string]string
}

// Containers lists the containers that carry label, stopped ones too.
func (e *Engine) Containers(ctx context.Context, label string) ([]Labelled, error) {
	r, err := e.client.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", label)})
	if err != nil {
		return nil, e.wrap(err, "list containers")
	}
	found := make([]Labelled, 0, len(r.Items))
	for _, c := range r.Items {
		found = append(found, Labelled{ID: c.ID, Labels: maps.Clone(c.Labels)})
	}
	return found, nil
}

// Volumes lists the volumes that carry label.
func (e *Engine) Volumes(ctx context.Context, label string) ([]Labelled, error) {
	r, err := e.client.VolumeList(ctx, client.VolumeListOptions{Filters: client.Filters{}.Add("label", label)})
	if err != nil {
		return nil, e.wrap(err, "list volumes")
	}
	found := make([]Labelled, 0, len(r.Items))
	for _, v := range r.Items {
		found = append(found, Labelled{ID: v.Name, Labels: maps.Clone(v.Labels)})
	}
	return found, nil
}

// RemoveVolume removes a volume; one that is gone already is no error. It
// works under a context of its own.
func (e *Engine) RemoveVolume(ctx context.Context, name string) error {
	ctx, cancel := bounded(ctx, removeTimeout)
	defer cancel()
	_, err := e.client.VolumeRemove(ctx, name, client.VolumeRemoveOptions{})
	if err = e.wrap(err, "remove volume %s", name); errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
