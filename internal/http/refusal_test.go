package http

import (
	"encoding/json"
	"strconv"
	"testing"

	"loadline/internal/session"
)

// Each refusal that the contract names for an operation can happen there, and each
// that the checks before the handlers make is named. 408 has a test of its own.
func TestContractNamesTheRefusals(t *testing.T) {
	c := openContract(t)
	tests := []struct {
		status  string
		err     error  // of whatever is behind the handlers
		query   string // added to the path
		body    string // instead of the example of the contract
		headers []string
		change  func(*Config)
		always  bool // it can happen in every operation that has what is refused
	}{
		{status: "400", query: "?limit=0&after=x&project=%", body: "{"},
		{status: "401", always: true, change: func(c *Config) { c.Settings.Keys = map[string]string{"anna": digest("key")} }},
		{status: "403", always: true, headers: []string{"Origin: http://evil.test"}},
		{status: "404", err: session.ErrNotFound, change: func(c *Config) { c.Page = fakePage{lost: true} }},
		{status: "409", err: session.ErrBusy},
		{status: "410", err: session.ErrOutputGone},
		{status: "412", headers: []string{`If-Match: "0-0"`}},
		{status: "413", always: true, change: func(c *Config) { c.Settings.BodyMaxBytes, c.Settings.ImportMaxBytes = 1, 1 }},
		{status: "415", always: true, headers: []string{"Content-Type: text/plain"}},
		{status: "416", headers: []string{"Range: bytes=4-"}},
		{status: "421", always: true, headers: []string{"Host: evil.test"}},
		{status: "422", err: session.ErrUnknownProject},
		{status: "429", err: session.ErrQueueFull},
		{status: "500", err: errDisk, change: func(c *Config) { c.Metrics = nil }},
		{status: "503", err: session.ErrStorage, change: func(c *Config) { c.Ready = func() error { return session.ErrStorage } }},
	}
	for _, o := range c.operations() {
		responses, _ := c.at(o.pointer() + "/responses")
		for _, test := range tests {
			body := ""
			if example, _ := c.at(o.pointer() + "/requestBody/content/application~1json/example"); example != nil {
				text, err := json.Marshal(example)
				if err != nil {
					t.Fatal(err)
				}
				if body = string(text); test.body != "" {
					body = test.body
				}
			}
			s := newTestServer(t, &fake{err: test.err, sub: ended(), items: []session.Item{{ToolResult: &session.ToolResult{KeptOutput: &session.KeptOutput{Bytes: 4}}}}, output: "kept"}, func(c *Config) {
				if test.change != nil {
					test.change(c)
				}
			})
			got := strconv.Itoa(askUnchecked(s, o.method, fill(o.pattern)+test.query, body, test.headers...).Code)
			named := responses.(map[string]any)[test.status] != nil
			if named && got != test.status {
				t.Errorf("%s %s answers %s, the contract names %s", o.method, o.pattern, got, test.status)
			}
			if !named && test.always && got == test.status {
				t.Errorf("%s %s answers %s, which the contract does not name", o.method, o.pattern, got)
			}
		}
	}
}
