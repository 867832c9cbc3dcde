package event_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/toolworker/toolworker/internal/event"
	"github.com/toolworker/toolworker/internal/tool"
)

// Readers are shared; what they read is not.
func TestManyAtOnce(t *testing.T) {
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range 50 {
				name := fmt.Sprintf("tool-%d-%d", worker, i)
				input := `{"text":"` + strings.Repeat(name, 1+i) + `"}`
				q, err := event.DecodeRequest(withData(`{"project":"p-1","tool":"`+name+`","input":`+input+`}`), prefix)
				if err != nil || q.Tool != name || string(q.Input) != input {
					t.Errorf("error %v, request %+v", err, q)
					return
				}
				_, err = event.DecodeRequest(withData(`{"project":"p-1","tool":"`+name+`","`+name+`":1}`), prefix)
				if err == nil || !strings.Contains(err.Error(), "/data/"+name+": unknown member") {
					t.Errorf("error %v", err)
					return
				}
				r := &tool.Result{RequestID: "r-1", Project: "p-1", Tool: name, Output: tool.Text(name)}
				m, err := event.EncodeResult(t.Context(), r, q, nil, prefix)
				if err != nil || !strings.Contains(string(m.Data), `"output":"`+name+`"`) {
					t.Errorf("error %v, message %s", err, m.Data)
					return
				}
			}
		})
	}
	all.Wait()
}
