package cgroup

import (
	"bufio"
	"os"
	"path"
	"slices"
	"strings"
)

// mounted is one mounted hierarchy and the group of this process in it.
type mounted struct {
	v2          bool
	controllers []string // version 1: those of the hierarchy
	mount       string   // mount point
	own         string   // directory of this process's own group, at or below mount
}

// hierarchies reads the mounted hierarchies in which this process has a
// visible group.
func hierarchies(mountinfo, self string) []mounted {
	groups := ownGroups(self)
	var found []mounted
	for _, line := range lines(mountinfo) {
		// 31 23 0:28 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids
		left, right, ok := strings.Cut(line, " - ")
		l, r := strings.Fields(left), strings.Fields(right)
		if !ok || len(l) < 5 || len(r) < 3 {
			continue
		}
		m := mounted{v2: r[0] == "cgroup2", mount: unescape(l[4])}
		key := ""
		if !m.v2 {
			if r[0] != "cgroup" {
				continue
			}
			for _, o := range strings.Split(r[2], ",") {
				if slices.Contains(wanted, o) {
					m.controllers = append(m.controllers, o)
				}
			}
			if len(m.controllers) == 0 {
				continue
			}
			key = m.controllers[0]
		}
		group, ok := groups[key]
		if !ok {
			continue
		}
		// The mount may show a part of the hierarchy only.
		rel, ok := below(unescape(l[3]), group)
		if !ok {
			continue
		}
		m.own = path.Join(m.mount, rel)
		if !slices.ContainsFunc(found, func(o mounted) bool { return o.v2 == m.v2 && slices.Equal(o.controllers, m.controllers) }) {
			found = append(found, m) // the first, should one be mounted twice
		}
	}
	return found
}

// ownGroups reads /proc/self/cgroup: the path of this process's group by
// controller, "" for version 2.
func ownGroups(file string) map[string]string {
	groups := map[string]string{}
	for _, line := range lines(file) {
		f := strings.SplitN(line, ":", 3)
		if len(f) != 3 {
			continue
		}
		for _, c := range strings.Split(f[1], ",") {
			groups[c] = f[2]
		}
	}
	return groups
}

// below gives p relative to root, if it lies at or below it.
func below(root, p string) (string, bool) {
	if strings.HasPrefix(p, "/..") {
		return "", false // outside of the cgroup namespace
	}
	if root == "/" {
		return p, true
	}
	rel, ok := strings.CutPrefix(p, root)
	return rel, ok && (rel == "" || rel[0] == '/')
}

func lines(file string) []string {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	var all []string
	for s := bufio.NewScanner(f); s.Scan(); {
		all = append(all, s.Text())
	}
	return all
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
