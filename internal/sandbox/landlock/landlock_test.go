package landlock

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

func needLandlock(t *testing.T) {
	t.Helper()
	if ABI() == 0 {
		t.Skip("this kernel has no Landlock")
	}
}

func TestRulesetHoldsForWhoeverEntersIt(t *testing.T) {
	needLandlock(t)
	dir := t.TempDir()
	for _, d := range []string{"read", "write", "other"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, d, "f"), []byte(d), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	rules := &Rules{
		Read:    []string{"/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/no/such/path", filepath.Join(dir, "read")},
		Write:   []string{filepath.Join(dir, "write")},
		Devices: []string{"/dev/null", "/no/such/device"},
	}
	fd, err := rules.Ruleset()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	script := `cd "$0" || exit 9
cat read/f write/f >/dev/null || exit 1
cat other/f 2>/dev/null && exit 2
( echo x > read/f ) 2>/dev/null && exit 3
( echo x > read/g ) 2>/dev/null && exit 4
echo x > write/f || exit 5
mkdir write/d && mv write/f write/d/f && rm -r write/d || exit 6
ls / 2>/dev/null && exit 7
exit 0`
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread is spoilt
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			done <- err
			return
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(fd), 0, 0); errno != 0 {
			done <- errno
			return
		}
		out, err := exec.Command("/bin/sh", "-c", script, dir).CombinedOutput()
		if err != nil {
			t.Logf("%s", out)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestRulesetNeedsWhatIsWritten(t *testing.T) {
	needLandlock(t)
	rules := &Rules{Write: []string{"/no/such/directory"}}
	if _, err := rules.Ruleset(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want one of a missing file", err)
	}
}

func TestHandledGrowsWithTheKernel(t *testing.T) {
	for abi := 2; abi <= 8; abi++ {
		old, now := handled(abi-1, true), handled(abi, true)
		if now.Handled_access_fs&old.Handled_access_fs != old.Handled_access_fs || now.Handled_access_net < old.Handled_access_net || now.Scoped < old.Scoped {
			t.Errorf("ABI %d handles less than the one before", abi)
		}
	}
	if a := handled(8, false); a.Handled_access_net != 0 {
		t.Error("TCP is handled though it is allowed")
	}
	if a := handled(ScopesABI, false); a.Scoped == 0 {
		t.Error("scopes are not handled")
	}
	if a := handled(1, true); a.Handled_access_fs != abi1 || a.Handled_access_net != 0 || a.Scoped != 0 {
		t.Errorf("ABI 1 handles %+v", a)
	}
}
