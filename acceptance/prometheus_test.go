package acceptance

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"loadline/internal/llm/llmtest"
	"loadline/internal/session"
)

// scrapeEvery is how often the Prometheus of a test scrapes, and evaluates rules.
const scrapeEvery = "200ms"

// watcher is the real one, with the configuration and the rules of deploy.
type watcher struct {
	*client
	log *output
}

// watch starts Prometheus on a server, which wants a key or, if that is empty, none. Its
// files are those of deploy, but for the addresses and the times: alerts fire at once.
func watch(t *testing.T, server *client, key string) *watcher {
	t.Helper()
	dir := t.TempDir()
	rewrite(t, "../deploy/prometheus/prometheus.yml", filepath.Join(dir, "prometheus.yml"),
		"15s", scrapeEvery, "loadline:8080", strings.TrimPrefix(server.url, "http://"),
		"/run/secrets/prometheus-key", filepath.Join(dir, "key"))
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	short := regexp.MustCompile(`(?m)^( +for:) \d+m$`).ReplaceAll(rules, []byte("$1 0s"))
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(rulesFile)), short, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &watcher{client: newClient(t)}
	p.log = runProgram(t, "prometheus", "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address=127.0.0.1:0", "--log.format=json")
	p.url = "http://" + p.log.find(`"address":"(127\.0\.0\.1:[1-9]\d*)".*"Listening on"`)[1]
	p.log.find(`Server is ready to receive web requests`)
	return p
}

// ask decodes the data of an answer of Prometheus' API.
func (p *watcher) ask(path string, into any) {
	p.t.Helper()
	var answer struct {
		Status, Error string
		Warnings      []string
		Data          json.RawMessage
	}
	if p.do("GET", "/api/v1/"+path, nil, &answer); answer.Status != "success" || len(answer.Warnings) > 0 {
		p.t.Fatalf("%s: %s %s %q", path, answer.Status, answer.Error, answer.Warnings)
	}
	if err := json.Unmarshal(answer.Data, into); err != nil {
		p.t.Fatalf("%s: %s: %v", path, answer.Data, err)
	}
}

// sample is one series of an answer.
type sample struct {
	Metric map[string]string
	Value  [2]any // seconds, and the value as text
}

func (p *watcher) query(expr string) []sample {
	p.t.Helper()
	var found struct{ Result []sample }
	p.ask("query?query="+url.QueryEscape(expr), &found)
	return found.Result
}

// until asks until the expression has a value or, as wanted, none.
func (p *watcher) until(expr string, wanted bool) {
	p.t.Helper()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for deadline := time.Now().Add(patience); (len(p.query(expr)) > 0) != wanted; <-again.C {
		if time.Now().After(deadline) {
			p.t.Fatalf("%s has a value: %t, after %s; the log of Prometheus:\n%s", expr, !wanted, patience, p.log)
		}
	}
}

const (
	firing = `ALERTS{alertstate="firing"}`
	wedged = `ALERTS{alertstate="firing",alertname="LoadlineSessionWedged"}`
)

// A model that falls silent in the middle of its answer: the real Prometheus says so,
// and is quiet again when the turn has gone on.
func TestPrometheusTellsOfAWedgedSession(t *testing.T) {
	t.Parallel() // Prometheus takes 5 s to look at its targets
	gate := make(chan struct{})
	p := launch(t, "[worker]\nstall_after = \"1s\"\n", bashed("echo hello"), says("hello"),
		llmtest.Step{Text: []string{"Half of ", "it"}, Gate: gate, GateAfter: 1})
	w := watch(t, p.client, "")
	w.until(`loadline_turns_total{outcome="completed"} == 0`, true)
	id := p.newSession()
	p.say(id, "all is well")
	w.until(`loadline_turns_total{outcome="completed"} == 1`, true)
	w.rulesAreWell()
	w.dashboardIsWell()
	if alerts := w.query(firing); len(alerts) > 0 {
		t.Errorf("alerts while all is well: %v", alerts)
	}

	turn := p.post(id, "tell me")
	w.until(wedged, true)
	if alerts := w.query(firing); len(alerts) != 1 || alerts[0].Metric["severity"] != "critical" || "http://"+alerts[0].Metric["instance"] != p.url {
		t.Errorf("alerts %v", alerts)
	}
	if told := w.follow("LoadlineSessionWedged", p.url); !strings.Contains(told, string(id)) {
		t.Errorf("the commands of its chapter print %q, want session %s", told, id)
	}
	close(gate)
	if ended := p.await(id, turn.ID); ended.State != session.TurnCompleted {
		t.Errorf("the turn: %s %+v", ended.State, ended.Error)
	}
	w.until(wedged, false)

	p.kill()
	w.until(`ALERTS{alertstate="firing",alertname="LoadlineDown"}`, true)
	if said := regexp.MustCompile(`(?m)^.*"level":"(warn|error)".*$`).FindAllString(w.log.String(), -1); len(said) > 0 {
		t.Errorf("Prometheus complains: %s", strings.Join(said, "\n"))
	}
}

// follow runs the commands of an alert's chapter, and returns what they print.
func (p *watcher) follow(alert, server string) string {
	p.t.Helper()
	text, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		p.t.Fatal(err)
	}
	block := regexp.MustCompile(`(?s)### ` + alert + `\n[^#]*?` + "```sh\n(.*?)```").FindSubmatch(text)
	if block == nil {
		p.t.Fatalf("there are no commands for %s", alert)
	}
	shell := exec.CommandContext(p.t.Context(), "sh", "-c", string(block[1]))
	shell.Env = append(os.Environ(), "U="+server)
	out, err := shell.CombinedOutput()
	if err != nil {
		p.t.Errorf("%s: %v", out, err)
	}
	return string(out)
}

// rulesAreWell fails unless every rule is evaluated without an error, and each that
// records has something to record.
func (p *watcher) rulesAreWell() {
	p.t.Helper()
	var want ruleGroups
	readYAML(p.t, rulesFile, &want)
	missing := 0
	for _, group := range want.Groups {
		missing += len(group.Rules)
		for _, rule := range group.Rules {
			if rule.Record != "" {
				p.until(rule.Record, true)
			}
		}
	}
	var loaded struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError string }
		}
	}
	p.ask("rules", &loaded)
	for _, group := range loaded.Groups {
		for _, rule := range group.Rules {
			if missing--; rule.Health != "ok" {
				p.t.Errorf("rule %s is %s: %s", rule.Name, rule.Health, rule.LastError)
			}
		}
	}
	if missing != 0 {
		p.t.Errorf("Prometheus lacks %d rules", missing)
	}
}

// dashboardIsWell fails unless each query of the dashboard shows something.
func (p *watcher) dashboardIsWell() {
	p.t.Helper()
	var d dashboard
	text, err := os.ReadFile("../deploy/grafana/dashboards/loadline.json")
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	filled := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$instance", ".*")
	for _, panel := range d.Panels {
		for _, target := range panel.Targets {
			if shown := p.query(filled.Replace(target.Expr)); len(shown) == 0 {
				p.t.Errorf("%q shows nothing of %s", panel.Title, target.Expr)
			}
		}
	}
}

// With keys, Prometheus needs one.
func TestPrometheusComesWithAKey(t *testing.T) {
	t.Parallel()
	const key = "lk_test_of_prometheus"
	p := launch(t, fmt.Sprintf("[server.keys]\nprometheus = \"sha256:%x\"\n", sha256.Sum256([]byte(key))))
	with, without := watch(t, p.client, key), watch(t, p.client, "lk_another")
	with.until(`up{job="loadline"} == 1`, true)
	without.until(`up{job="loadline"} == 0`, true)
}
