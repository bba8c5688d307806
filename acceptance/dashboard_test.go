package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is what this test wants of Grafana's form.
type dashboard struct {
	UID        string
	Title      string
	Templating struct{ List []struct{ Name, Type string } }
	Panels     []panel
}

type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Datasource  struct{ UID string }
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct {
		Expr, LegendFormat string
		Datasource         struct{ UID string }
	}
}

// Each panel says what it shows, in which unit, and of what the server really has.
func TestDashboardShowsWhatTheServerHas(t *testing.T) {
	text, err := os.ReadFile("../deploy/grafana/dashboards/loadline.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || len(d.Panels) == 0 {
		t.Fatalf("the dashboard has uid %q, title %q and %d panels", d.UID, d.Title, len(d.Panels))
	}
	var variables []string
	for _, v := range d.Templating.List {
		variables = append(variables, v.Type+" "+v.Name)
	}
	if want := []string{"datasource datasource", "query job", "query instance"}; !slices.Equal(variables, want) {
		t.Errorf("variables %q, want %q", variables, want)
	}
	var expressions []string
	ids := map[int]string{}
	for _, p := range d.Panels {
		if other, ok := ids[p.ID]; ok {
			t.Errorf("%q and %q have the same id", p.Title, other)
		}
		ids[p.ID] = p.Title
		for _, problem := range p.problems() {
			t.Errorf("panel %d %q: %s", p.ID, p.Title, problem)
		}
		for _, target := range p.Targets {
			expressions = append(expressions, target.Expr)
		}
	}
	checkExpressions(t, expressions)
	checkNames(t, launch(t, "").client, string(text))
}

func (p panel) problems() (all []string) {
	if p.Title == "" || p.GridPos.W == 0 || p.GridPos.H == 0 || p.GridPos.X+p.GridPos.W > 24 {
		all = append(all, fmt.Sprintf("no title, or a place outside of the grid: %+v", p.GridPos))
	}
	if p.Type == "row" {
		return all
	}
	if p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 || p.Datasource.UID != "${datasource}" {
		all = append(all, "needs a description, a unit, a target and the data source of the variable")
	}
	for _, target := range p.Targets {
		if target.Expr == "" || target.LegendFormat == "" || target.Datasource.UID != "${datasource}" {
			all = append(all, fmt.Sprintf("target %+v", target))
		}
	}
	return all
}

// checkExpressions has Prometheus' own tool parse them, as rules of a file.
func checkExpressions(t *testing.T, expressions []string) {
	t.Helper()
	var rules strings.Builder
	rules.WriteString("groups: [{name: dashboard, rules: [\n")
	filled := strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$instance", ".*")
	for i, expr := range expressions {
		encoded, err := json.Marshal(filled.Replace(expr))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&rules, "{record: %q, expr: %s},\n", fmt.Sprintf("panel:%d", i), encoded)
	}
	rules.WriteString("]}]\n")
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool, err := exec.LookPath("../bin/promtool")
	if err != nil {
		if promtool, err = exec.LookPath("promtool"); err != nil {
			t.Fatal("promtool is missing: run make tools")
		}
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("the expressions of the dashboard: %v\n%s", err, out)
	}
}

// checkNames fails for a name that neither /metrics nor the rules of this project have.
func checkNames(t *testing.T, c *client, text string) {
	t.Helper()
	_, metrics := c.send("GET", "/metrics", nil)
	rules, err := os.ReadFile("../deploy/prometheus/loadline.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^([a-z_]+)[{ ]`).FindAllSubmatch(metrics, -1) {
		known[string(found[1])] = true
	}
	for _, found := range regexp.MustCompile(`(?m)^ *- record: (\S+)$`).FindAllSubmatch(rules, -1) {
		known[string(found[1])] = true
	}
	names := regexp.MustCompile(`\b(?:[a-z_]+:)?(?:loadline|process|go)_[a-z0-9_:]+`).FindAllString(text, -1)
	if len(names) < 20 {
		t.Fatalf("only %d names were found: %q", len(names), names)
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("there is no metric %s", name)
		}
	}
}
