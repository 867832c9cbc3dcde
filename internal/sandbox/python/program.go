package python

import "strings"

// program is one text for python3 -c that runs parts as one module, in a
// namespace and with builtins of its own, out of reach of the code.
func program(parts ...string) string {
	var b strings.Builder
	b.WriteString("exec(compile(")
	quote(&b, strings.Join(parts, "\n"))
	b.WriteString(", 'toolworker', 'exec'), {'__name__': 'toolworker', '__builtins__': dict(vars(__import__('builtins')))})")
	return b.String()
}

// quote writes s as a Python string literal.
func quote(b *strings.Builder, s string) {
	b.WriteByte('\'')
	for _, r := range s {
		switch r {
		case '\\':
			b.WriteString(`\\`)
		case '\'':
			b.WriteString(`\'`)
		case '\n':
			b.WriteString(`\n`)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
}

// strip drops comment lines and blank lines, which would only make the start
// slower and the command line longer.
func strip(source string) string {
	var b strings.Builder
	for line := range strings.Lines(source) {
		if text := strings.TrimSpace(line); text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		b.WriteString(line)
	}
	return b.String()
}
