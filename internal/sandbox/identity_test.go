package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolworker/toolworker/internal/sandbox/room"
)

func TestFirstSlotLiesInTheNamespace(t *testing.T) {
	for name, tc := range map[string]struct {
		uidMap string
		want   int
		ok     bool
	}{
		"everybody":              {"         0          0 4294967295\n", firstSlotID, true},
		"a range of the host's":  {"0 100000 65536\n", 65534 - slotIDs, true},
		"two ranges":             {"0 1000 1\n1 100000 65536\n", 65537 - slotIDs, true},
		"one user":               {"1000 1000 1\n", 0, false},
		"ours and no more":       {"0 0 1\n1879100000 5 1024\n", firstSlotID, true},
		"not all of ours":        {"0 0 1\n1879100000 5 1000\n", 0, false},
		"nonsense":               {"x y z\n", 0, false},
		"there is no such thing": {"", 0, false},
	} {
		file := filepath.Join(t.TempDir(), "uid_map")
		if err := os.WriteFile(file, []byte(tc.uidMap), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := firstSlot(file); got != tc.want || ok != tc.ok {
			t.Errorf("%s: first slot %d %t, want %d %t", name, got, ok, tc.want, tc.ok)
		}
	}
	if got, ok := firstSlot("/no/such/file"); got != firstSlotID || !ok {
		t.Errorf("without a map: first slot %d", got)
	}
}

func TestEveryToolHasAUserOfItsOwn(t *testing.T) {
	i := &identities{privileged: true, first: 5000, taken: map[int]bool{}}
	seen := map[int]room.Identity{}
	for range slotIDs {
		id, err := i.take()
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := seen[id.UID]; ok || id.UID < 5000 || id.UID >= 5000+slotIDs || !id.Privileged {
			t.Fatalf("identity %+v", id)
		}
		seen[id.UID] = id
	}
	if id, err := i.take(); err == nil {
		t.Errorf("one more than there are: %+v", id)
	}
	i.give(seen[5007])
	if id, err := i.take(); err != nil || id != seen[5007] {
		t.Errorf("took %+v, %v, want the one that was given back", id, err)
	}
}

func TestWithoutPrivilegesThereIsOneUser(t *testing.T) {
	i := &identities{taken: map[int]bool{}}
	for range 3 {
		id, err := i.take()
		if err != nil || id.UID != os.Geteuid() || id.GID != os.Getegid() || id.Privileged {
			t.Errorf("identity %+v, %v", id, err)
		}
	}
}
