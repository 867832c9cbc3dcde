package fleet

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// Catalog writes a catalogue directory with one project "p", rooted at an
// empty directory, and what entries hold. It returns both directories.
func Catalog(t testing.TB, entries string) (dir, root string) {
	t.Helper()
	base := t.TempDir()
	dir, root = filepath.Join(base, "catalog"), filepath.Join(base, "project")
	for _, d := range []string{dir, root} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	project := fmt.Sprintf("kind: Project\nid: p\nhost_sandbox_path: %s\n", root)
	if entries != "" {
		project += "---\n" + entries
	}
	if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(project), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, root
}
