package queue

import (
	"net/url"
	"strings"
)

// redact takes user, password and token out of server URLs, for logs and errors.
func redact(servers string) string {
	list := strings.Split(servers, ",")
	for i, s := range list {
		u, err := url.Parse(strings.TrimSpace(s))
		if err != nil {
			list[i] = "(unreadable URL)"
			continue
		}
		u.User = nil
		list[i] = u.String()
	}
	return strings.Join(list, ",")
}
