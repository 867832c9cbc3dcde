package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func textFile(t *testing.T, text string) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(f, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestHierarchies(t *testing.T) {
	for name, tc := range map[string]struct {
		mountinfo, self string
		want            []mounted
	}{
		"version 1 and an empty version 2": {
			"22 27 0:21 / /proc rw - proc proc rw\n" +
				"33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
				"36 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
				"37 31 0:33 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n" +
				"38 31 0:33 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n" +
				"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"4:memory:/a/b\n3:cpu,cpuacct:/\n2:devices:/\n0::/init.scope\n",
			[]mounted{
				{controllers: []string{"cpu", "cpuacct"}, mount: "/sys/fs/cgroup/cpu,cpuacct", own: "/sys/fs/cgroup/cpu,cpuacct"},
				{controllers: []string{"memory"}, mount: "/sys/fs/cgroup/memory", own: "/sys/fs/cgroup/memory/a/b"},
				{v2: true, mount: "/sys/fs/cgroup/unified", own: "/sys/fs/cgroup/unified/init.scope"},
			},
		},
		"part of a hierarchy, in a container": {
			`50 40 0:28 /docker/abc /sys/fs/cgroup/with\040space ro master:5 - cgroup2 cgroup rw` + "\n",
			"0::/docker/abc/inner\n",
			[]mounted{{v2: true, mount: "/sys/fs/cgroup/with space", own: "/sys/fs/cgroup/with space/inner"}},
		},
		"mounted twice": {
			"41 31 0:38 / /a rw - cgroup2 cgroup2 rw\n42 31 0:38 / /b rw - cgroup2 cgroup2 rw\n",
			"0::/x\n",
			[]mounted{{v2: true, mount: "/a", own: "/a/x"}},
		},
		"group outside of the namespace": {"41 31 0:38 / /a rw - cgroup2 cgroup2 rw\n", "0::/../x\n", nil},
		"group outside of the mount":     {"41 31 0:38 /docker/abc /a rw - cgroup2 cgroup2 rw\n", "0::/docker/abcd\n", nil},
		"no line makes sense":            {"\n- - -\nx\n", "::\nnonsense\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := hierarchies(textFile(t, tc.mountinfo), textFile(t, tc.self))
			if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(mounted{})); d != "" {
				t.Error(d)
			}
		})
	}
	if got := hierarchies("/no/such/file", "/no/such/file"); got != nil {
		t.Errorf("without /proc: %+v", got)
	}
}
