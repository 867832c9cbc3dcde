package main

import (
	"bytes"
	"net/url"
	"os"
	"strings"

	"github.com/moby/moby/client"
)

// engineOff is the value of --container-engine for none.
const engineOff = "off"

// engineURL is the engine that the flag names, else DOCKER_HOST, else the
// local socket if it is there; "" for none.
func engineURL(flag string) string {
	switch flag {
	case engineOff:
		return ""
	case "":
	default:
		return flag
	}
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		return host
	}
	u, err := url.Parse(client.DefaultDockerHost)
	if err != nil {
		return ""
	}
	if info, err := os.Stat(u.Path); err != nil || info.Mode()&os.ModeSocket == 0 {
		return ""
	}
	return client.DefaultDockerHost
}

// firstLine is the first line of a program's output.
func firstLine(out []byte) string {
	line, _, _ := bytes.Cut(out, []byte("\n"))
	return strings.TrimSpace(string(line))
}
