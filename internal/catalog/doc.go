// Package catalog holds the tools and projects that operators offer to
// planners (protocol, section 3): read from a directory of YAML files or from
// a KV bucket, validated, watched, and handed out as immutable snapshots.
//
// A bad entry is refused with its place and reason. The last good entry of
// that name stays in force, and the other entries go in.
package catalog
