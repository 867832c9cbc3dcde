package catalog

import "errors"

// Errors of the bucket.
var (
	// ErrNotFound: there is no such entry, or no such switch is set.
	ErrNotFound = errors.New("not in the catalogue")
	// ErrAmbiguous: a tool and a project have that name; say tool.NAME or project.NAME.
	ErrAmbiguous = errors.New("both a tool and a project have this name: say tool.NAME or project.NAME")
	// ErrConflict: others kept changing the catalogue at the same time.
	ErrConflict = errors.New("the catalogue was changed by others meanwhile")
)
