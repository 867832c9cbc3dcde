package exec

import (
	"net/url"
	"strings"
)

// fileURL is a file: URL taken apart, in any of the forms that programs
// accept: file:///x, file:/x, file://localhost/x, in any letter case.
type fileURL struct {
	prefix  string // "file://" or "file:" as written, an authority included
	host    string
	raw     string // what follows the prefix, still encoded
	decoded string // raw, percent-decoded exactly once
	bad     bool   // raw is not well encoded
}

// parseFileURL takes s apart; false when it is no file: URL.
func parseFileURL(s string) (fileURL, bool) {
	const scheme = "file:"
	if len(s) < len(scheme) || !strings.EqualFold(s[:len(scheme)], scheme) {
		return fileURL{}, false
	}
	u := fileURL{raw: s[len(scheme):]}
	if after, ok := strings.CutPrefix(u.raw, "//"); ok {
		end := strings.IndexByte(after, '/')
		if end < 0 {
			end = len(after)
		}
		u.host, u.raw = after[:end], after[end:]
	}
	u.prefix = s[:len(s)-len(u.raw)]
	decoded, err := url.PathUnescape(u.raw)
	u.decoded, u.bad = decoded, err != nil
	return u, true
}

// local reports whether the URL names a file of this machine.
func (u *fileURL) local() bool { return u.host == "" || strings.EqualFold(u.host, "localhost") }

// cutRoot is cutRoot for the URL's path; the rest is encoded.
func (u *fileURL) cutRoot(root string) (string, bool) {
	if u.bad || !u.local() {
		return "", false
	}
	rest, ok := cutRoot(u.decoded, root)
	if !ok {
		return "", false
	}
	raw, written := strings.CutPrefix(u.raw, root)
	if plain, ok := strings.CutPrefix(u.decoded, root); ok && written && startsElement(raw) && !climbs(plain) {
		return raw, true // as written: an encoded slash stays one
	}
	return (&url.URL{Path: rest}).EscapedPath(), true
}

// readings are the paths that programs may take s for: s itself, and for a
// file: URL its decoded path, with and without what could be a query or a
// fragment. ok is false when it is a URL of another machine or badly encoded.
func readings(s string) (paths []string, ok bool) {
	u, isURL := parseFileURL(s)
	if !isURL {
		return []string{s}, true
	}
	if u.bad || !u.local() {
		return nil, false
	}
	paths = []string{s, u.decoded}
	if i := strings.IndexAny(u.raw, "?#"); i >= 0 {
		if decoded, err := url.PathUnescape(u.raw[:i]); err == nil {
			paths = append(paths, decoded)
		}
	}
	return paths, true
}
