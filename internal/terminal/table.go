package terminal

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Table writes aligned columns, row by row as they come: its widths are fixed
// at the start and wider cells push only their own row.
type Table struct {
	w      io.Writer
	widths []int
	right  map[int]bool
}

// NewTable makes a table whose columns are at least as wide as given, in
// characters. The last column is never padded; columns named in right are
// aligned to the right.
func NewTable(w io.Writer, widths []int, right ...int) *Table {
	t := &Table{w: w, widths: widths, right: make(map[int]bool)}
	for _, column := range right {
		t.right[column] = true
	}
	return t
}

// Row writes one row. Cells may be painted; foreign text goes through Line first.
func (t *Table) Row(cells ...string) error {
	var b strings.Builder
	for i, cell := range cells {
		if i > 0 {
			b.WriteString("  ")
		}
		pad := ""
		if i < len(t.widths) {
			pad = strings.Repeat(" ", max(0, t.widths[i]-visible(cell)))
		}
		switch {
		case t.right[i]:
			b.WriteString(pad + cell)
		case i == len(cells)-1:
			b.WriteString(cell)
		default:
			b.WriteString(cell + pad)
		}
	}
	_, err := io.WriteString(t.w, strings.TrimRight(b.String(), " ")+"\n")
	return err
}

// Write writes rows at once, as wide as the widest cell of each column.
func Write(w io.Writer, rows [][]string, right ...int) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], visible(cell))
		}
	}
	t := NewTable(w, widths, right...)
	for _, row := range rows {
		if err := t.Row(row...); err != nil {
			return err
		}
	}
	return nil
}

// visible is the number of characters of text that are seen.
func visible(text string) int {
	n := 0
	for text != "" {
		if strings.HasPrefix(text, "\x1b[") {
			if end := strings.IndexByte(text, 'm'); end >= 0 {
				text = text[end+1:]
				continue
			}
		}
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		n++
	}
	return n
}

// Line makes one printable line of at most width characters out of foreign
// text: white space is folded, control characters become U+FFFD, and what is
// too long ends in an ellipsis.
func Line(text string, width int) string {
	if len(text) > 8*width { // enough for the longest line; the rest is never looked at
		text = text[:8*width]
	}
	text = strings.Join(strings.Fields(text), " ")
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return utf8.RuneError
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(0, width-1)]) + "…"
}
