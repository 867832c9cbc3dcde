package reference

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of the documents anew")

// Verify fails when a document does not have text between its markers
// <!-- NAME --> and <!-- end of NAME -->; with -update it puts it there.
func Verify(t *testing.T, document, name, text string) {
	t.Helper()
	have, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	next, err := replace(string(have), name, text)
	switch {
	case err != nil:
		t.Errorf("%s: %v", document, err)
	case next == string(have):
	case *update:
		if err := os.WriteFile(document, []byte(next), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s: the part %q is not as the program is (go test -update writes it anew); expected:\n%s", document, name, text)
	}
}

// replace puts text between the markers of a part.
func replace(document, name, text string) (string, error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, ok := strings.Cut(document, begin)
	if !ok {
		return "", fmt.Errorf("no marker %s", strings.TrimSpace(begin))
	}
	_, after, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("no marker %s", strings.TrimSpace(end))
	}
	return before + begin + text + end + after, nil
}
