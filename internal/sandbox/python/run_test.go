package python

import "testing"

func TestRun(t *testing.T) {
	for name, c := range map[string]struct {
		code string
		want outcome
	}{
		"print":    {"print(6*7)", outcome{output: "42\n"}},
		"nothing":  {"", outcome{}},
		"input":    {"print(input_data['n'] + 1)", outcome{output: "9007199254740994\n"}},
		"main":     {"print(__name__, __doc__)\nimport __main__\nprint(__main__.input_data is input_data)", outcome{output: "__main__ None\nTrue\n"}},
		"argv":     {"import sys; print(sys.argv)", outcome{output: "['sum']\n"}},
		"result":   {"result = {'a': [1, 2.5, None, True, 'é'], 'n': input_data['n']}", outcome{value: `{"a":[1,2.5,null,true,"é"],"n":9007199254740993}`}},
		"null":     {"result = None", outcome{value: "null"}},
		"int":      {"raise SystemExit(300)", outcome{exit: 44}},
		"none":     {"raise SystemExit", outcome{}},
		"text":     {"import sys; sys.exit('x')", outcome{output: "x\n", exit: 1}},
		"negative": {"raise SystemExit(-1)", outcome{exit: 255}},
		"huge":     {"raise SystemExit(1 << 80)", outcome{exit: 255}},
		"true":     {"raise SystemExit(True)", outcome{exit: 1}},
		"os exit":  {"import os; print('lost'); os._exit(7)", outcome{exit: 7}},
		"segv":     {"import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", outcome{exit: 139}},
		"abort":    {"import os; os.abort()", outcome{exit: 134}},
		"interrupt": {"raise KeyboardInterrupt", outcome{exit: 130, output: "Traceback (most recent call last):\n" +
			"  File \"<sum>\", line 1, in <module>\n    raise KeyboardInterrupt\nKeyboardInterrupt\n"}},
		"raise": {"def f():\n    raise ValueError('no')\nf()", outcome{exit: 1, output: "Traceback (most recent call last):\n" +
			"  File \"<sum>\", line 3, in <module>\n    f()\n" +
			"  File \"<sum>\", line 2, in f\n    raise ValueError('no')\nValueError: no\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := runCold(t, &Request{Name: "sum", Code: []byte(c.code), Input: []byte(`{"n": 9007199254740993}`)})
			got.cpu = 0
			if got != c.want {
				t.Errorf("code %q\ngot  %+v\nwant %+v", c.code, got, c.want)
			}
		})
	}
}
