package room

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// roomEnv makes this binary build the room that its value describes, as JSON,
// and execute the shell script in its argument there.
const roomEnv = "TOOLWORKER_TEST_ROOM"

func TestMain(m *testing.M) {
	if description := os.Getenv(roomEnv); description != "" {
		fmt.Fprintln(os.Stderr, inside(description))
		os.Exit(99)
	}
	os.Exit(m.Run())
}

func inside(description string) error {
	var r Room
	if err := json.Unmarshal([]byte(description), &r); err != nil {
		return err
	}
	missing, err := r.Build()
	if err != nil {
		return err
	}
	return unix.Exec("/bin/sh", []string{"sh", "-c", os.Args[1]}, []string{"PATH=/usr/bin:/bin", "MISSING=" + strings.Join(missing, ",")})
}

// in runs a script in a room, with the descriptors of mounts from 3 on.
func in(t *testing.T, r *Room, script string, mounts ...*os.File) (string, error) {
	t.Helper()
	description, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", script)
	cmd.Env = []string{roomEnv + "=" + string(description)}
	cmd.ExtraFiles = mounts
	cmd.SysProcAttr = Namespaces(identity(), r.Network)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	return out.String(), err
}

func identity() Identity {
	if os.Geteuid() == 0 {
		return Identity{UID: 1_879_100_500, GID: 1_879_100_500, Privileged: true}
	}
	return Identity{UID: os.Geteuid(), GID: os.Getegid()}
}

// newRoom is a room for a project that everybody may write.
func newRoom(t *testing.T) *Room {
	t.Helper()
	dir, err := os.MkdirTemp("", "toolworker-room-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return &Room{Project: Mount{Path: dir, Writable: true}, TmpBytes: 1 << 20, TmpFiles: 100, ShmBytes: 1 << 20}
}

func wants(t *testing.T, r *Room, script, want string, mounts ...*os.File) {
	t.Helper()
	if out, err := in(t, r, script, mounts...); err != nil || out != want {
		t.Errorf("%s\ngave %q, %v, want %q", script, out, err, want)
	}
}

func TestRoomHoldsTheSystemAndTheProject(t *testing.T) {
	r := newRoom(t)
	wants(t, r, `cd / && for d in *; do [ -L $d ] || echo $d; done; hostname; id -un; id -u; ls /dev; ls -A /tmp /dev/shm`,
		"dev\netc\nproc\ntmp\nusr\nsandbox\nsandbox\n1000\nfd\nfull\nnull\nrandom\nshm\nstderr\nstdin\nstdout\nurandom\nzero\n/dev/shm:\n\n/tmp:\n"+filepath.Base(r.Project.Path)+"\n")
	wants(t, r, fmt.Sprintf("echo x > %[1]s/f && cat %[1]s/f", r.Project.Path), "x\n")
	if b, err := os.ReadFile(filepath.Join(r.Project.Path, "f")); err != nil || string(b) != "x\n" {
		t.Errorf("on the host the file holds %q, %v", b, err)
	}
}

func TestRoomIsReadOnlyButForTheProject(t *testing.T) {
	r := newRoom(t)
	r.Project.Writable = false
	wants(t, r, `for f in /x /usr/x /etc/x /dev/x /etc/passwd `+r.Project.Path+`/x; do (: > $f) 2>&1 | grep -q 'Read-only' || echo wrote $f; done; : > /tmp/x; : > /dev/shm/x`, "")
}

func TestRoomShowsNothingOfTheHost(t *testing.T) {
	r := newRoom(t)
	wants(t, r, `ls -d /home /root /var /run /sys /proc/sys /proc/kcore /proc/cpuinfo 2>/dev/null; [ $$ = 1 ] || echo not first; echo /proc/[0-9]*; cat /etc/hostname`,
		"/proc/1\nsandbox\n")
}

func TestRoomWithoutProcSaysSo(t *testing.T) {
	r := newRoom(t)
	out, err := in(t, r, `echo "$MISSING"; [ -e /proc/self/status ] && echo proc`)
	if err != nil || out != "\nproc\n" && out != MissingProc+"\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestRoomProtects(t *testing.T) {
	r := newRoom(t)
	for _, d := range []string{"a/b/c", "d"} {
		if err := os.MkdirAll(filepath.Join(r.Project.Path, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"a", "a/b", "a/b/c", "d"} {
		if err := os.Chmod(filepath.Join(r.Project.Path, d), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("d", filepath.Join(r.Project.Path, "link")); err != nil {
		t.Fatal(err)
	}
	r.Protect = []string{"a/b/c", "a/b", "missing/x", "d", "link/y"}
	wants(t, r, "cd "+r.Project.Path+`
for d in a/b/c a/b d; do (: > $d/x) 2>/dev/null && echo wrote $d; done
for d in a a/b a/b/c d; do mv $d gone 2>/dev/null && echo moved $d; rmdir $d 2>/dev/null && echo removed $d; done
rm -rf gone # a copy, for mv tries that as well
: > a/x && : > x && ls`, "a\nd\nlink\nx\n")
}

func TestRoomRefusesALinkAsProject(t *testing.T) {
	r := newRoom(t)
	link := r.Project.Path + "-link"
	if err := os.Symlink(r.Project.Path, link); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(link)
	r.Project.Path = link
	if out, err := in(t, r, "echo built"); err == nil || !strings.Contains(out, "symbolic links") {
		t.Errorf("%q, %v", out, err)
	}
	r.Project.Path = "/no/such/project"
	if out, err := in(t, r, "echo built"); err == nil || !strings.Contains(out, "no such file") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestRoomShowsFurtherDirectories(t *testing.T) {
	r := newRoom(t)
	other := newRoom(t).Project.Path
	if err := os.WriteFile(filepath.Join(other, "f"), []byte("other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.ReadOnly = []Mount{{Path: other}}
	wants(t, r, fmt.Sprintf("cat %[1]s/f; (: > %[1]s/g) 2>/dev/null || echo refused", other), "other\nrefused\n")
}

func TestRoomWithNetworkHasWhatNamesNeed(t *testing.T) {
	r := newRoom(t)
	r.Network = true
	host, err := os.ReadFile("/etc/hosts")
	if err != nil {
		t.Skip("this machine has no /etc/hosts")
	}
	wants(t, r, "cat /etc/hosts", string(host))
}

func TestPreparedMountMapsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts are prepared by a privileged worker only")
	}
	r := newRoom(t)
	dir := r.Project.Path
	private := filepath.Join(dir, "private")
	for _, err := range []error{os.Mkdir(private, 0o700), os.Chmod(dir, 0o700), os.Chown(dir, 1234, 2345), os.Chown(private, 1234, 2345)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	holder := exec.Command("sleep", "1000")
	id := identity()
	holder.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 1234, HostID: id.UID, Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 2345, HostID: id.GID, Size: 1}},
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Wait() }()
	defer func() { _ = holder.Process.Kill() }()
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", holder.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer namespace.Close()
	tree, err := r.Project.Prepare(int(namespace.Fd()))
	if errors.Is(err, unix.EINVAL) {
		t.Skip("this file system knows no mapped mounts")
	}
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(tree), "mount")
	defer f.Close()
	r.Project.FD = 3
	wants(t, r, "cd "+dir+" && : > private/f && stat -c %u:%g private/f", "1000:1000\n", f)
	st, err := os.Stat(filepath.Join(private, "f"))
	if err != nil {
		t.Fatal(err)
	}
	if s := st.Sys().(*syscall.Stat_t); s.Uid != 1234 || s.Gid != 2345 {
		t.Errorf("on the host the file belongs to %d:%d", s.Uid, s.Gid)
	}
}

func TestInOrder(t *testing.T) {
	items := inOrder([]item{{target: "/tmp/a/b"}, {target: "/usr"}, {target: "/tmp"}, {target: "/tmp/a", file: true}})
	var targets []string
	for _, it := range items {
		targets = append(targets, it.target)
	}
	if want := []string{"/tmp", "/tmp/a", "/tmp/a/b", "/usr"}; !slices.Equal(targets, want) {
		t.Errorf("order %v, want %v", targets, want)
	}
}
