package room

import (
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

var devices = []string{"null", "zero", "full", "random", "urandom"}

// library are the directories that may be links into /usr.
var library = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// settings are what programs of /usr read of /etc; none of it is secret.
var settings = []string{
	"/etc/alternatives", "/etc/ca-certificates", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
	"/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/timezone",
}

// trust is what a program needs beside to trust hosts of the network.
var trust = []string{"/etc/pki/ca-trust", "/etc/pki/tls/certs", "/etc/crypto-policies", "/usr/share/ca-certificates"}

type source struct {
	path string
	file bool
}

// systemDirs are the parts of the host that every room shows.
func systemDirs() []source {
	sources := []source{{path: "/usr"}}
	for _, p := range library {
		if st, err := os.Lstat(p); err == nil && st.IsDir() {
			sources = append(sources, source{path: p})
		}
	}
	return append(sources, existing(settings)...)
}

func networkDirs() []source { return existing(trust) }

// existing are those of the paths that are no links; a link's target has
// either its own place in the room or none.
func existing(paths []string) []source {
	var sources []source
	for _, p := range paths {
		if st, err := os.Lstat(p); err == nil && (st.IsDir() || st.Mode().IsRegular()) {
			sources = append(sources, source{p, !st.IsDir()})
		}
	}
	return sources
}

// furnish writes what is the room's own.
func (r *Room) furnish(root int) error {
	for _, dir := range []string{"etc", "dev", "proc", "tmp", "usr"} {
		if err := makeDirs(root, dir); err != nil {
			return err
		}
	}
	links := map[string]string{
		"dev/fd": "/proc/self/fd", "dev/stdin": "/proc/self/fd/0", "dev/stdout": "/proc/self/fd/1", "dev/stderr": "/proc/self/fd/2",
	}
	for _, p := range append(library, settings...) {
		if to, err := os.Readlink(p); err == nil {
			links[p[1:]] = to
		}
	}
	for name, to := range links {
		if err := makeDirs(root, path.Dir(name)); err != nil {
			return err
		}
		if err := unix.Symlinkat(to, root, name); err != nil {
			return &os.PathError{Op: "link", Path: "/" + name, Err: err}
		}
	}
	files := map[string][]byte{
		"etc/passwd":        fmt.Appendf(nil, "sandbox:x:%d:%d::/tmp:/bin/sh\n", UID, GID),
		"etc/group":         fmt.Appendf(nil, "sandbox:x:%d:\n", GID),
		"etc/hosts":         []byte("127.0.0.1 localhost sandbox\n::1 localhost sandbox\n"),
		"etc/hostname":      []byte("sandbox\n"),
		"etc/nsswitch.conf": []byte("passwd: files\ngroup: files\nhosts: files\n"),
	}
	if r.Network {
		// Copies: the originals may be links to where no room reaches.
		for _, p := range []string{"etc/hosts", "etc/nsswitch.conf", "etc/resolv.conf", "etc/host.conf", "etc/gai.conf"} {
			if b, err := os.ReadFile("/" + p); err == nil {
				files[p] = b
			}
		}
	}
	for name, data := range files {
		if err := writeFile(root, name, data); err != nil {
			return err
		}
	}
	return nil
}
