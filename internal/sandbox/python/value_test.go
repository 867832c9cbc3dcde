package python

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestValue(t *testing.T) {
	for name, c := range map[string]struct {
		code  string
		value string // of one that is representable
		lacks string // part of the reason of one that is not
	}{
		"empty":       {"result = [[], {}, (), '', [[]], {'': {}}]", `[[],{},[],"",[[]],{"":{}}]`, ""},
		"mixed":       {"result = [{'a': [1], 'b': {}}, [], {'c': ()}, 2]", `[{"a":[1],"b":{}},[],{"c":[]},2]`, ""},
		"escapes":     {`result = '"\\/\b\f\n\r\t\x00\x1f\x7f\u2028é😀'`, `"\"\\/\b\f\n\r\t\u0000\u001f` + "\x7f\u2028é😀" + `"`, ""},
		"numbers":     {"result = [0, -0.0, 1e300, 1.5, -1, 2**64, 1e16, 5e-324]", `[0,-0.0,1e+300,1.5,-1,18446744073709551616,1e+16,5e-324]`, ""},
		"subclasses":  {"import enum, collections\nclass E(enum.IntEnum):\n  A = 7\nclass S(str): pass\nP = collections.namedtuple('P', 'x y')\nresult = [E.A, S('s'), P(1, 2), collections.OrderedDict(a=1), collections.Counter('a')]", `[7,"s",[1,2],{"a":1},{"a":1}]`, ""},
		"large int":   {"result = 10 ** 5000", "1" + strings.Repeat("0", 5000), ""},
		"exit":        {"result = 1\nraise SystemExit(0)", "1", ""},
		"by module":   {"import __main__\n__main__.result = 3", "3", ""},
		"by thread":   {"import threading\ndef f():\n  global result\n  result = 4\nthreading.Thread(target=f).start()", "4", ""},
		"by atexit":   {"import atexit\n@atexit.register\ndef f():\n  global result\n  result = 5", "5", ""},
		"deleted":     {"result = 1\ndel result", "", ""},
		"nan":         {"result = {'a': [1, float('nan')]}", "", "result/a/1: nan is not representable in JSON"},
		"inf":         {"result = -float('inf')", "", "result: -inf is not representable in JSON"},
		"set":         {"result = {'a/b~': {1}}", "", "result/a~1b~0: an object of type set has no JSON form"},
		"bytes":       {"result = b'x'", "", "type bytes"},
		"int key":     {"result = {1: 2}", "", "result: a key of type int: expected a string"},
		"none key":    {"result = [{None: 2}]", "", "result/0: a key of type NoneType: expected a string"},
		"surrogate":   {`result = ['\ud800']`, "", "result/0: a string with a lone surrogate"},
		"surrogate k": {`result = {'\ud800': 1}`, "", "a string with a lone surrogate"},
		"cycle":       {"result = []\nresult.append(result)", "", "more than 1000 levels deep, or a cycle"},
		"wide":        {"result = ['x' * 1000] * 10000", "", "larger than 8388608 bytes"},
		"text":        {"result = 'é' * 5000000", "", "larger than 8388608 bytes"},
		"function":    {"def result(): pass", "", "type function"},
		"same key":    {"class S(str):\n  __hash__ = object.__hash__\n  __eq__ = object.__eq__\nresult = {S('a'): 1, S('a'): 2}", "", "not strict JSON: "},
		"endless":     {"class L(list):\n  def __iter__(self):\n    while True:\n      raise ValueError('mine')\nresult = L([1])", "", "ValueError: mine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runCold(t, &Request{Name: "tool", Code: []byte(c.code)})
			if got.exit != 0 || got.output != "" {
				t.Errorf("exit %d, output %q", got.exit, got.output)
			}
			if got.value != c.value {
				t.Errorf("value %.200q, want %.200q", got.value, c.value)
			}
			if (got.reason == "") != (c.lacks == "") || !strings.Contains(got.reason, c.lacks) {
				t.Errorf("reason %q, want %q", got.reason, c.lacks)
			}
		})
	}
}

// The code may break what it likes in its own process: the value arrives or
// there is a reason.
func TestValueOfHostileCode(t *testing.T) {
	for name, c := range map[string]struct{ code, value, reason, output string }{
		"builtins":  {"import builtins\nresult = [1]\nvars(builtins).clear()", "[1]", "", ""},
		"json":      {"import json, sys\njson.dumps = None\nsys.modules['json'] = None\nresult = {'a': 1}", `{"a":1}`, "", ""},
		"modules":   {"import sys\nresult = 1\nsys.modules.clear()", "1", "", ""},
		"main":      {"import sys\nsys.modules['__main__'] = None\nresult = 2", "2", "", ""},
		"os":        {"import os, posix\nfor n in ('write', 'fstat', '_exit', 'read'):\n  setattr(posix, n, None); setattr(os, n, None)\nresult = 3", "3", "", ""},
		"sys":       {"import sys\nresult = 4\nfor n in list(vars(sys)):\n  if n not in ('stdout', 'stderr'): delattr(sys, n)", "4", "", ""},
		"recursion": {"import sys\nsys.setrecursionlimit(50)\nresult = [[[[1]]]]", "[[[[1]]]]", "", ""},
		"closed":    {"import os\nos.closerange(3, 100)\nresult = 5", "", "", "result cannot be sent: result: OSError: [Errno 9] Bad file descriptor\n"},
		"reopened":  {"import os\nos.close(4)\nf = open('file', 'w')\nwhile f.fileno() < 4: f = open('file', 'w')\nresult = 6", "", "", "result cannot be sent: result: OSError: [Errno 9] the code closed the descriptor of result\n"},
		"garbage":   {"import os\nos.write(4, b'garbage')\nresult = 7", "", "result did not arrive as a frame", ""},
		"forged":    {"import os\nos.write(4, b'v\\x03\\x00\\x00\\x00NaN')", "", "result is not strict JSON", ""},
		"twice":     {"import os\nos.write(4, b'v\\x01\\x00\\x00\\x001')\nresult = 8", "", "result did not arrive as a frame", ""},
		"endless":   {"import os\nwhile True: os.write(4, b'v\\x00\\x00\\xff\\xff' + bytes(65000)) and (n := globals().get('n', 0) + 1) > 200 and os._exit(0)", "", "result: larger than", ""},
		"dict":      {"class D(dict):\n  def items(self): raise KeyboardInterrupt\n  __class__ = int\nresult = D(a=1)", `{"a":1}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runCold(t, &Request{Name: "tool", Code: []byte(c.code)})
			if got.value != c.value || got.output != c.output ||
				(got.reason == "") != (c.reason == "") || !strings.Contains(got.reason, c.reason) {
				t.Errorf("got %+v\nwant %+v", got, c)
			}
		})
	}
}

// Whatever JSON goes in comes out the same.
func TestInputRoundTrip(t *testing.T) {
	deep := strings.Repeat("[", 999) + strings.Repeat("]", 999)
	wide := "9" + strings.Repeat("1", 6000)
	for _, input := range []string{
		`{"a":[1,-0.5,1e+22,true,false,null,"\"\\é😀\u0000"],"n":123456789012345678901234567890}`,
		`{"deep":` + deep + `}`,
		`{"wide":` + wide + `}`,
		" \n{ } ",
	} {
		got := runCold(t, &Request{Name: "tool", Code: []byte("result = input_data"), Input: []byte(input)})
		want := strings.Join(strings.Fields(input), "")
		if got.value != want {
			t.Errorf("input %.100s\ngot  %.200s %s %.500s", input, got.value, got.reason, got.output)
		}
	}
}

func TestInputTooDeepForPython(t *testing.T) {
	input := strings.Repeat("[", 200000) + strings.Repeat("]", 200000)
	got := runCold(t, &Request{Name: "tool", Code: []byte("print(1)"), Input: []byte(input)})
	if got.exit != 1 || !strings.Contains(got.output, "RecursionError") {
		t.Errorf("got exit %d, %.300q", got.exit, got.output)
	}
}

func TestReadValue(t *testing.T) {
	frame := func(tag byte, size uint32, body string) string {
		return string(binary.LittleEndian.AppendUint32([]byte{tag}, size)) + body
	}
	for name, c := range map[string]struct{ sent, value, reason string }{
		"absent":    {"", "", ""},
		"value":     {frame('v', 4, "null"), "null", ""},
		"reason":    {frame('e', 3, "why"), "", "why"},
		"no reason": {frame('e', 0, ""), "", "result cannot be represented as JSON"},
		"control":   {frame('e', 7, "a\nb\x1b[2\xff"), "", "a b [2"},
		"half":      {"v\x01", "", "result was cut off"},
		"short":     {frame('v', 9, "null"), "", "result was cut off"},
		"long":      {frame('v', 4, "nullnull"), "", "not arrive as a frame"},
		"tag":       {frame('x', 1, "1"), "", "not arrive as a frame"},
		"huge":      {frame('v', 1<<32-1, "1"), "", "larger than 100 bytes"},
		"huge e":    {frame('e', 1<<20, "1"), "", "larger than"},
		"two":       {frame('v', 3, "1 2"), "", "more than one document"},
		"duplicate": {frame('v', 13, `{"a":1,"a":2}`), "", "not strict JSON"},
		"utf-8":     {frame('v', 3, "\"\xff\""), "", "not strict JSON"},
		"nan":       {frame('v', 3, "NaN"), "", "not strict JSON"},
		"empty":     {frame('v', 0, ""), "", "not strict JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			r := strings.NewReader(c.sent)
			value, reason, err := ReadValue(iotest.OneByteReader(r), 100)
			if err != nil || string(value) != c.value || !strings.Contains(reason, c.reason) || (reason == "") != (c.reason == "") {
				t.Errorf("ReadValue = %q, %q, %v", value, reason, err)
			}
			if r.Len() > 0 {
				t.Errorf("%d bytes were not drained", r.Len())
			}
		})
	}
	if _, _, err := ReadValue(iotest.ErrReader(iotest.ErrTimeout), 0); err == nil {
		t.Error("an error of the reader was lost")
	}
}

// Whoever writes the frame by himself is not held by the bounds of the
// process's own side.
func TestForgedDepth(t *testing.T) {
	frame := func(body string) io.Reader {
		return strings.NewReader("v" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(body)))) + body)
	}
	for levels, fine := range map[int]bool{MaxValueDepth: true, MaxValueDepth + 1: false, 9000: false} {
		for _, pair := range [][2]string{{"[", "]"}, {`{"a[\\\"[":`, "}"}} {
			body := strings.Repeat(pair[0], levels) + "0" + strings.Repeat(pair[1], levels)
			value, reason, err := ReadValue(frame(body), 0)
			if err != nil || fine != (string(value) == body) || fine == strings.Contains(reason, "1000 levels") {
				t.Errorf("%d levels of %s: %d bytes, %q, %v", levels, pair[0], len(value), reason, err)
			}
		}
	}
	wide := "[" + strings.Repeat("[[]],", 5000) + `"[[[\\"]`
	if value, reason, err := ReadValue(frame(wide), 0); string(value) != wide {
		t.Errorf("wide: %q, %v", reason, err)
	}
}

func TestReadLimit(t *testing.T) {
	frame := func(tag byte, body string) string {
		return string(binary.LittleEndian.AppendUint32([]byte{tag}, uint32(len(body)))) + body
	}
	for name, c := range map[string]struct {
		sent string
		want Said
	}{
		"alone":         {frame('l', "open_files"), Said{Limit: "open_files"}},
		"before value":  {frame('l', "pids") + frame('v', "1"), Said{Limit: "pids", Value: []byte("1")}},
		"before reason": {frame('l', "pids") + frame('e', "why"), Said{Limit: "pids", Reason: "why"}},
		"unknown":       {frame('l', "patience"), Said{Reason: notAFrame}},
		"twice":         {frame('l', "pids") + frame('l', "pids"), Said{Limit: "pids", Reason: notAFrame}},
		"after value":   {frame('v', "1") + frame('l', "pids"), Said{Reason: notAFrame}},
		"cut":           {frame('l', "pids")[:7], Said{Reason: "result was cut off"}},
	} {
		got, err := Read(strings.NewReader(c.sent), 100)
		if err != nil || got.Limit != c.want.Limit || got.Reason != c.want.Reason || string(got.Value) != string(c.want.Value) {
			t.Errorf("%s: read %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

func FuzzReadValue(f *testing.F) {
	f.Add([]byte("v\x04\x00\x00\x00null"))
	f.Add([]byte("e\x01\x00\x00\x00x"))
	f.Add([]byte("v\xff\xff\xff\xff"))
	f.Add([]byte("l\x04\x00\x00\x00pidsv\x01\x00\x00\x001"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		said, err := Read(bytes.NewReader(sent), 64)
		value, reason := said.Value, said.Reason
		switch {
		case err != nil:
			t.Fatal(err)
		case value != nil && (reason != "" || len(value) > 64 || !jsontext.Value(value).IsValid()):
			t.Fatalf("value %q, reason %q", value, reason)
		case value == nil && reason == "" && len(sent) > 0 && said.Limit == "":
			t.Fatal("bytes without a value or a reason")
		case strings.ContainsAny(reason, "\n\x00\x1b"):
			t.Fatalf("reason %q", reason)
		}
	})
}

func TestFrame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := &Request{
			Name:  rapid.String().Draw(t, "name"),
			Code:  rapid.SliceOf(rapid.Byte()).Draw(t, "code"),
			Input: rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "input"),
			Limits: rapid.SliceOf(rapid.Custom(func(t *rapid.T) Rlimit {
				return Rlimit{rapid.IntRange(0, 20).Draw(t, "resource"), rapid.Uint64().Draw(t, "soft"), rapid.Uint64().Draw(t, "hard")}
			})).Draw(t, "limits"),
			ValueBytes: rapid.Uint32Min(1).Draw(t, "bytes"), ValueDepth: rapid.Uint32Min(1).Draw(t, "depth"),
		}
		b, err := r.Frame()
		if err != nil {
			t.Fatal(err)
		}
		le, u32 := binary.LittleEndian, func(at int) int { return int(binary.LittleEndian.Uint32(b[at:])) }
		got := &Request{ValueBytes: le.Uint32(b[16:]), ValueDepth: le.Uint32(b[20:]), Limits: []Rlimit{}}
		at := requestHeader
		for range u32(24) {
			got.Limits = append(got.Limits, Rlimit{u32(at), le.Uint64(b[at+8:]), le.Uint64(b[at+16:])})
			at += limitSize
		}
		got.Name, at = string(b[at:at+u32(4)]), at+u32(4)
		got.Code, at = b[at:at+u32(8)], at+u32(8)
		got.Input = b[at:]
		if len(got.Input) != u32(12) || string(b[:4]) != requestMagic {
			t.Fatalf("frame %q", b)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
