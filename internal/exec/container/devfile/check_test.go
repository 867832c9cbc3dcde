package devfile

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for content, bad := range map[string]string{
		`{"image": "x"}`: "",
		`{"image": "x", "postCreateCommand": "make", "remoteEnv": {"A": "b"}, "customizations": {"vscode": {}}}`: "",
		"{\n// a comment\n\"image\": \"x\", /* another */ \"name\": \"http://x/*y*/\",\n}":                       "",
		`{"build": {"dockerfile": "Dockerfile", "context": ".."}}`:                                               "",
		`{"image": "x", "workspaceMount": "source=${localWorkspaceFolder},target=/workspace,type=bind"}`:         "",
		`{"image": "x", "workspaceMount": "source=/,target=/workspace,type=bind"}`:                               "workspaceMount",
		`{"image": "x", "workspaceMount": "source=${localWorkspaceFolder}/../..,target=/workspace,type=bind"}`:   "workspaceMount",
		`{"image": "x", "workspaceMount": "source=${localWorkspaceFolder},src=/,target=/w,type=bind"}`:           "workspaceMount",
		`{"image": "x", "initializeCommand": "id"}`:                                                              "initializeCommand",
		`{"image": "x", "\u0069nitializeCommand": "id"}`:                                                         "initializeCommand",
		`{"image": "x", "runArgs": ["--privileged"], "mounts": []}`:                                              "mounts, runArgs",
		`{"image": "x", "privileged": true}`:                                                                     "privileged",
		`{"image": "x", "capAdd": ["SYS_ADMIN"]}`:                                                                "capAdd",
		`{"image": "x", "securityOpt": []}`:                                                                      "securityOpt",
		`{"image": "x", "features": {}}`:                                                                         "features",
		`{"dockerComposeFile": "c.yml"}`:                                                                         "dockerComposeFile",
		`{"image": "x", "appPort": [80]}`:                                                                        "appPort",
		`{"image": "x", "somethingNew": 1}`:                                                                      "somethingNew",
		`{"build": {"dockerfile": "Dockerfile", "options": ["--network=host"]}}`:                                 "build",
		`{"build": {"dockerfile": "../../Dockerfile"}}`:                                                          "build",
		`{"build": {"dockerfile": "Dockerfile", "context": "/"}}`:                                                "build",
		`{"dockerFile": "${localEnv:HOME}/Dockerfile"}`:                                                          "dockerFile",
		`{"image": "x", "image": "y"}`:                                                                           "no JSON",
		`["image"]`:                                                                                              "no JSON",
		`{"image": "x"`:                                                                                          "no JSON",
		`{"image": "x}`:                                                                                          "without an end",
		`{"image": "x" /* }`:                                                                                     "without an end",
		``:                                                                                                       "no JSON",
	} {
		err := Check([]byte(content), ".devcontainer")
		switch {
		case bad == "" && err != nil:
			t.Errorf("%s: %v", content, err)
		case bad != "" && (err == nil || !strings.Contains(err.Error(), bad)):
			t.Errorf("%s: %v, want %q in it", content, err, bad)
		}
	}
}

func TestStripKeepsStrings(t *testing.T) {
	t.Parallel()
	in := `{"a": "// no comment", "b": "/* nor this */", "c": "\"//\\", "d": [1, 2, /* x */ ], }`
	out, err := strip([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got["a"] != "// no comment" || got["b"] != "/* nor this */" || got["c"] != `"//\` {
		t.Errorf("%v", got)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"image": "x", // y` + "\n}"))
	f.Add([]byte(`{"build": {"context": "..",},}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		if Check(content, "d") != nil {
			return
		}
		// What is accepted never holds a member that needs trust, as any
		// reader of JSON sees it.
		out, err := strip(content)
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(out, &members); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"initializeCommand", "runArgs", "mounts", "privileged", "capAdd", "features", "dockerComposeFile"} {
			if _, ok := members[name]; ok {
				t.Errorf("accepted with %s", name)
			}
		}
	})
}
