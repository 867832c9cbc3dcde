// Package catalog holds the tools and projects that operators offer to
// planners (protocol, section 3): read from a directory of YAML files or from
// a KV bucket, validated, watched, and handed out as immutable snapshots.
//
// A bad entry is refused with its place and reason. The last good entry of
// that name stays in force, and the other entries go in. Of a file with a
// document whose name cannot be read every entry stays that is not found
// elsewhere; of two entries with one name neither is taken.
//
// # Directory
//
// Files are *.yaml and *.yml, at any depth, names that begin with a dot left
// out; each holds any number of documents. Every change is found by looking
// at sizes, times and inodes, and only documents whose text changed are parsed
// again.
//
// # Bucket
//
//	tool.<name>, project.<id>             the JSON form of an entry
//	file.<sha256>                         a file that lies beside entries
//	revision                              {"entries": {"tool.a": 12, "project.p": 7},
//	                                       "files": {"tool.a": {"a.py": "<sha256>"}}}
//	pause.pool.<pool>, pause.project.<id>, pause.tool.<name>
//	                                      a switch; that the key is there is all that matters
//
// The value of revision names the write of each key that is in force. An apply
// writes entries first and then exchanges revision by compare-and-set, so that
// whoever reads in between finds the whole state before in the history, and
// then the whole state after. An apply that was interrupted leaves nothing in
// force; repeating it takes over what it wrote. The history of five bears four
// interrupted applies of different values of one entry; beyond that a reader
// that begins anew is told to have the entry applied again, and one that runs
// keeps what it has.
//
// A bucket filled by other means is read too: with another value of revision
// the last writes before it are in force, without the key the last writes.
// The first apply or delete takes over what is in force.
//
// Files that a command names beside its entry are carried along, up to 512 KiB
// each; a worker puts them into a directory of its own while it runs, which is
// then the entry's.
//
// Switches take effect at once, without a new revision.
package catalog
