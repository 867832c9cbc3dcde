package catalog

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/toolworker/toolworker/schemas"
)

// Bounds of one YAML document. The parser's time grows with the square of
// the nesting, so that what no operator writes is refused before it is parsed.
const (
	maxDocument = 256 << 10 // bytes
	maxTokens   = 100_000
	maxNesting  = 64 // brackets and braces, or dashes on one line
)

// yamlDocument is one parsed document: its value in the types that schemas
// take, and where its members are.
type yamlDocument struct {
	chunk chunk
	body  ast.Node
	value any
	// faults are those that leave a value: duplicate members and numbers
	// that have no JSON form.
	faults []schemas.Fault
}

// parseYAML reads one document. It returns nil for one without content, and
// an error with the line of the file when nothing can be made of it.
func parseYAML(c chunk) (doc *yamlDocument, at int, err error) {
	at = c.line
	if len(c.text) > maxDocument {
		return nil, at, fmt.Errorf("document of %d bytes: expected at most %d", len(c.text), maxDocument)
	}
	if !utf8.ValidString(c.text) {
		return nil, at, errors.New("document is not valid UTF-8")
	}
	tokens := lexer.Tokenize(c.text)
	if t, err := checkTokens(tokens); err != nil {
		return nil, lineOfToken(c, t), err
	}
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var where yaml.Error
		if errors.As(err, &where) && where.GetToken() != nil {
			return nil, lineOfToken(c, where.GetToken()), fmt.Errorf("invalid YAML: %s", where.GetMessage())
		}
		return nil, at, fmt.Errorf("invalid YAML: %w", err)
	}
	for _, d := range file.Docs {
		if d.Body == nil || d.Body.Type() == ast.CommentGroupType {
			continue
		}
		if doc != nil {
			return nil, lineOfToken(c, d.Body.GetToken()), errors.New("more after the end of the document: expected --- before it")
		}
		doc = &yamlDocument{chunk: c, body: d.Body}
		doc.value = doc.convert("", d.Body)
	}
	return doc, at, nil
}

// checkTokens refuses what the catalogue has no use for and what would cost
// the parser too much.
func checkTokens(tokens token.Tokens) (*token.Token, error) {
	nesting, dashes, line := 0, 0, 0
	for i, t := range tokens {
		if t.Position.Line != line {
			line, dashes = t.Position.Line, 0
		}
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			nesting++
		case token.MappingEndType, token.SequenceEndType:
			nesting--
		case token.SequenceEntryType:
			dashes++
		case token.AnchorType, token.AliasType, token.MergeKeyType, token.TagType, token.DirectiveType, token.MappingKeyType:
			return t, fmt.Errorf("%s: anchors, aliases, merge keys, tags, directives and complex keys are not supported, write the value out",
				strings.TrimSpace(t.Value))
		}
		if nesting > maxNesting || dashes > maxNesting {
			return t, fmt.Errorf("nested more than %d levels deep", maxNesting)
		}
		if i >= maxTokens {
			return t, fmt.Errorf("document of more than %d tokens", maxTokens)
		}
	}
	return nil, nil
}

// convert returns the value of a node; pointer is its place in the document.
func (d *yamlDocument) convert(pointer string, n ast.Node) any {
	switch n := n.(type) {
	case *ast.MappingNode:
		return d.convertMapping(pointer, n.Values)
	case *ast.MappingValueNode:
		return d.convertMapping(pointer, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		list := make([]any, len(n.Values))
		for i, v := range n.Values {
			list[i] = d.convert(pointer+"/"+strconv.Itoa(i), v)
		}
		return list
	case *ast.NullNode:
		return nil
	case *ast.BoolNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.StringNode:
		// YAML 1.2 numbers with an exponent and no point are strings to the parser.
		if n.Token.Type == token.StringType && isJSONNumber(n.Value) {
			return d.number(pointer, n.Value)
		}
		return n.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return d.number(pointer, n.GetToken().Value)
	}
	d.fault(pointer, "%s is not supported", strings.ToLower(n.Type().YAMLName()))
	return nil
}

func (d *yamlDocument) convertMapping(pointer string, members []*ast.MappingValueNode) any {
	object := make(map[string]any, len(members))
	for _, m := range members {
		name := keyText(m.Key)
		at := pointer + "/" + escapePointer(name)
		if _, taken := object[name]; taken {
			d.fault(at, "given more than once")
			continue
		}
		object[name] = d.convert(at, m.Value)
	}
	return object
}

// keyText is the name of a member; one that looks like a number is a name too.
func keyText(k ast.MapKeyNode) string {
	if s, ok := k.(*ast.StringNode); ok {
		return s.Value
	}
	return k.GetToken().Value
}

// number keeps the digits as they were written, so that none are lost.
func (d *yamlDocument) number(pointer, text string) any {
	if !isJSONNumber(text) {
		d.fault(pointer, "number %s: expected plain decimal digits", text)
		return json.Number("1")
	}
	// The bounds of numbers are those of every document.
	if _, err := schemas.Value([]byte(text)); err != nil {
		d.fault(pointer, "number of %d digits: too long or too large", len(text))
		return json.Number("1")
	}
	return json.Number(text)
}

func (d *yamlDocument) fault(pointer, format string, args ...any) {
	d.faults = append(d.faults, schemas.Fault{Pointer: pointer, Message: fmt.Sprintf(format, args...)})
}

// line is where in the file the value at pointer begins, or the deepest
// value on the way there that exists.
func (d *yamlDocument) line(pointer string) int {
	n, t := d.body, firstToken(d.body)
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		next, at := child(n, unescapePointer(step))
		if next == nil {
			break
		}
		n, t = next, at
	}
	return lineOfToken(d.chunk, t)
}

// child is the member or item of a node, and the token where it begins.
func child(n ast.Node, step string) (ast.Node, *token.Token) {
	switch n := n.(type) {
	case *ast.MappingNode:
		for i := len(n.Values) - 1; i >= 0; i-- { // of duplicates the last is at fault
			if m := n.Values[i]; keyText(m.Key) == step {
				return m.Value, m.Key.GetToken()
			}
		}
	case *ast.MappingValueNode:
		if keyText(n.Key) == step {
			return n.Value, n.Key.GetToken()
		}
	case *ast.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Values) {
			return n.Values[i], firstToken(n.Values[i])
		}
	}
	return nil, nil
}

// firstToken is the token where a node begins. A block mapping's own token is
// its first colon.
func firstToken(n ast.Node) *token.Token {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken()
	}
	return n.GetToken()
}

func lineOfToken(c chunk, t *token.Token) int {
	if t == nil || t.Position == nil || t.Position.Line < 1 {
		return c.line
	}
	return c.line + t.Position.Line - 1
}

// isJSONNumber reports whether text is a number of JSON.
func isJSONNumber(text string) bool {
	if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return false
	}
	return json.Valid([]byte(text))
}

var (
	pointerEscaper   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

func escapePointer(s string) string   { return pointerEscaper.Replace(s) }
func unescapePointer(s string) string { return pointerUnescaper.Replace(s) }
