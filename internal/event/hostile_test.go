package event_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/toolworker/toolworker/internal/event"
)

// nested is a value of so many levels of lists, or of objects.
func nested(levels int, open, inner, closing string) string {
	return strings.Repeat(open, levels) + inner + strings.Repeat(closing, levels)
}

// CASES 15: 100,000 levels of JSON give invalid_request and no crash.
func TestLevels(t *testing.T) {
	for name, form := range map[string]func(string) event.Message{
		"structured": withData,
		"binary":     func(data string) event.Message { return inHeaders(data) },
	} {
		input := func(value string) event.Message {
			return form(`{"project":"p-1","tool":"t","input":{"a":` + value + `}}`)
		}
		t.Run(name, func(t *testing.T) {
			inside := event.MaxDepth - 2 // the data and the input are two
			mustDecode(t, input(nested(inside, "[", "", "]")))
			mustDecode(t, input(nested(inside, `{"a":`, "1", "}")))
			for _, value := range []string{
				nested(inside+1, "[", "", "]"), nested(inside+1, `{"a":`, "1", "}"), nested(100_000, "[", "", "]"), nested(100_000, `{"a":`, "[]", "}"),
				nested(10_000, `[{"]":"\"}",`+"\n"+`"b":`, `"[[["`, "}]"),
			} {
				e := mustReject(t, input(value))
				wantContains(t, e.Message, "/data/input/a/", "more than 512 levels of objects and lists")
				if len(e.Message) > 8<<10 {
					t.Errorf("message of %d bytes", len(e.Message))
				}
			}
			// Brackets in texts are no levels.
			mustDecode(t, input(`"`+strings.Repeat(`[{\"`, 2000)+`"`))
		})
	}
	if _, err := event.DecodeData([]byte(nested(100_000, "[", "", "]"))); err == nil {
		t.Error("100,000 lists are the data of a request")
	}
	e := mustReject(t, inBody(`{"specversion":"1.0","id":"r-1","source":"/p","type":"dev.toolworker.request.v1","ext":`+
		nested(100_000, "[", "", "]")+`,"data":`+minimal+`}`))
	wantContains(t, e.Message, "/ext: ")
}

// CASES 15: NaN and Infinity give invalid_request, wherever they are, and
// with their place; so do the other ways in which encoders go wrong.
func TestJSONThatIsNotStrict(t *testing.T) {
	for _, c := range []struct{ input, want string }{
		{`{"a":NaN}`, "/data/input/a: NaN is no JSON number"},
		{`{"a":[1,Infinity]}`, "/data/input/a/1: Infinity is no JSON number"},
		{`{"a":-Infinity}`, "/data/input/a: -Infinity is no JSON number"},
		{`{"a":1,"a":2}`, "/data/input/a: duplicate member"},
		{`{"a":{"b":1,"\u0062":2}}`, "/data/input/a/b: duplicate member"},
		{"{\"a\":\"\xff\"}", "/data/input/a: invalid UTF-8"},
		{"{\"a\xc3\":1}", "/data/input: invalid UTF-8"},
		{`{"a":"\ud800"}`, "/data/input/a: lone surrogate"},
		{`{"a":"\udc00\ud800\udc00 \\ud800"}`, "/data/input/a: lone surrogate"},
		{"{\"a\":\"\xed\xa0\x80\"}", "/data/input/a: invalid UTF-8"},
	} {
		data := `{"project":"p-1","tool":"t","input":` + c.input + `}`
		wantContains(t, mustReject(t, withData(data)).Message, c.want)
		wantContains(t, mustReject(t, inHeaders(data)).Message, c.want)
	}
	e := mustReject(t, withData(`{"project":"p-1","tool":"t","tool":"u","limits":{"timeout_seconds":NaN}}`))
	wantContains(t, e.Message, "/data/tool: duplicate member", "/data/limits/timeout_seconds: NaN is no JSON number")
	e = mustReject(t, inBody(`{"specversion":"1.0","id":"r-1","id":"r-2","source":"/p","type":"dev.toolworker.request.v1","data":`+minimal+`}`))
	wantContains(t, e.Message, "/id: duplicate member")
	m := withData(minimal)
	m.Data = append([]byte("\xef\xbb\xbf"), m.Data...)
	wantContains(t, mustReject(t, m).Message, "/: begins with a byte order mark")
}

// CASES 12 and 14: what programs may well contain reaches them as it is.
func TestCodeAndInputOfAllKinds(t *testing.T) {
	q := mustDecode(t, withData(`{"project":"p-1","inline":{"code":"\ufeff# -*- coding: latin-1 -*-\nprint('\u0000\ud83d\ude00')"},
		"input":{"text":"\u0000"}}`))
	if want := "\ufeff# -*- coding: latin-1 -*-\nprint('\x00\U0001f600')"; q.Inline.Code != want {
		t.Errorf("code %q, expected %q", q.Inline.Code, want)
	}
	long := strings.Repeat("x = 1\\n", 300_000)
	if q := mustDecode(t, withData(`{"project":"p-1","inline":{"code":"`+long+`"}}`)); len(q.Inline.Code) != 6*300_000 {
		t.Errorf("code of %d bytes", len(q.Inline.Code))
	}
}

// However much is wrong, the error stays readable and names places first.
func TestErrorsAreBounded(t *testing.T) {
	var members strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&members, `,"x%d":NaN`, i)
	}
	for name, data := range map[string]string{
		"many members":      `{"project":"p-1","tool":"t"` + members.String() + `}`,
		"a long name":       `{"project":"p-1","tool":"t","` + strings.Repeat("é", 100_000) + `":1}`,
		"a long value":      `{"project":"` + strings.Repeat("é", 100_000) + `","tool":"t"}`,
		"a long number":     `{"project":"p-1","tool":"t","limits":{"pids":` + strings.Repeat("9", 400_000) + `}}`,
		"a deep place":      `{"project":"p-1","tool":"t","input":` + nested(500, `{"`+strings.Repeat("n", 500)+`":`, "NaN", "}") + `}`,
		"many long strings": `{"project":"p-1","tool":"t","outputs":[` + strings.Repeat(`"`+strings.Repeat("p", 5000)+`",`, 90) + `1]}`,
	} {
		t.Run(name, func(t *testing.T) {
			for _, m := range []event.Message{withData(data), inHeaders(data)} {
				e := mustReject(t, m)
				if len(e.Message) > 5000 || !strings.HasPrefix(e.Message, "/data/") {
					t.Errorf("message of %d bytes: %.200s", len(e.Message), e.Message)
				}
			}
		})
	}
}
